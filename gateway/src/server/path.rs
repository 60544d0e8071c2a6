//! What paths mean.
//!
//! They are compared as engines understand them: percent-encoding undone once,
//! empty and `.` parts dropped, `..` resolved, a slash at the end ignored. An
//! encoded slash separates parts for some engines and belongs to one for others: a
//! path is gated if either reading is. So no other spelling of a gated path slips
//! past the gate. What is passed on is always the client's own spelling.

/// A path's parts as engines understand them to which an encoded slash is one.
pub(crate) fn normalise(path: &str) -> Vec<String> {
    resolve(decode(path).split('/').map(str::to_owned))
}

/// A path's parts as the other engines understand them.
pub(crate) fn split_first(path: &str) -> Vec<String> {
    resolve(path.split('/').map(decode))
}

/// Drops what says nothing, and goes up where told to.
fn resolve(spelled: impl Iterator<Item = String>) -> Vec<String> {
    let mut parts = Vec::new();
    for part in spelled {
        match part.as_str() {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts
}

/// Undoes percent-encoding, an encoded slash included. What is no valid code
/// stays as it is.
fn decode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| Some(hex(*bytes.get(at + 1)?)? << 4 | hex(*bytes.get(at + 2)?)?))
            .flatten();
        decoded.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}
