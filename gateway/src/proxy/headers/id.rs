//! A request's id.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// A request's identity, passed on to the engine and made if missing.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest request id that is followed, in bytes.
const MAX_ID: usize = 256;

/// The request's id: the client's, or a new random one, which is then set in the place
/// of any that is no id (see [`is_id`]), or of several.
pub fn request_id(headers: &mut HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(REQUEST_ID).iter();
    if let (Some(id), None) = (given.next(), given.next())
        && is_id(id)
    {
        return id.clone();
    }
    let text = format!("{:032x}", rand::random::<u128>());
    let id = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("none"));
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// Whether this may identify a request in a log: 1 to 256 bytes of printable ASCII.
#[must_use]
pub fn is_id(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    let printable = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    (1..=MAX_ID).contains(&bytes.len()) && printable
}

#[cfg(test)]
mod tests {
    use super::super::testing::headers;
    use super::*;

    #[test]
    fn a_request_keeps_its_id_or_gets_one() {
        let mut with = headers(&[("x-request-id", "mine")]);
        assert_eq!(request_id(&mut with), "mine");
        let (mut one, mut other) = (HeaderMap::new(), HeaderMap::new());
        assert_eq!(request_id(&mut one).len(), 32);
        assert_ne!(request_id(&mut one), request_id(&mut other));
        assert_eq!(request_id(&mut one), one.clone()[REQUEST_ID]);
        let longest = "x".repeat(MAX_ID);
        assert_eq!(
            request_id(&mut headers(&[("x-request-id", &longest)])),
            longest
        );
    }

    #[test]
    fn what_is_no_id_or_several_is_replaced_by_one() {
        let long = "x".repeat(MAX_ID + 1);
        for given in [
            &[("x-request-id", "")][..],
            &[("x-request-id", &long)],
            &[("x-request-id", "a\tb")],
            &[("x-request-id", "\u{e9}")],
            &[("x-request-id", "one"), ("x-request-id", "two")],
            &[("x-request-id", "same"), ("x-request-id", "same")],
        ] {
            let mut headers = headers(given);
            let id = request_id(&mut headers);
            assert_eq!(id.len(), 32, "{given:?}");
            let all: Vec<_> = headers.get_all(REQUEST_ID).iter().collect();
            assert_eq!(all, [id], "{given:?}");
        }
    }
}
