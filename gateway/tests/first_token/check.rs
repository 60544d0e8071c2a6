//! The watcher beside the reference, on a stream that some bytes describe.

use tidegate_gateway::proxy::first_token::{Event, Watcher};

use super::reference::{TABLE, Told, told};

/// Lines that go before and between data, and are no data.
const OTHERS: [&str; 8] = [
    ": ping",
    ":",
    "event: metadata",
    "event: message_stop",
    "event: error",
    "id: 4",
    "retry",
    "dat: x",
];

const ENDS: [&str; 3] = ["\n", "\r\n", "\r"];

/// Makes a stream of `bytes` and feeds it to a watcher, piece by piece. After each
/// the watcher must have told what the reference reads off the body so far.
pub fn check(bytes: &[u8]) {
    let mut watcher = Watcher::for_events();
    let mut furthest = Told::Nothing;
    let mut body = Vec::new();
    for piece in pieces(bytes) {
        body.extend_from_slice(&piece);
        let Some(expected) = told(&body) else {
            return;
        };
        let brought = match watcher.feed(&piece) {
            None => Told::Nothing,
            Some(Event::FirstToken) => Told::FirstToken,
            Some(Event::End) => Told::End,
        };
        // Each is told once.
        assert!(brought == Told::Nothing || brought > furthest);
        furthest = furthest.max(brought);
        assert_eq!(furthest, expected, "{:?}", String::from_utf8_lossy(&body));
    }
}

/// Each byte adds a line, a line's end, raw bytes, or a cut.
fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = bytes.iter().copied();
    while let Some(kind) = bytes.next() {
        let which = usize::from(bytes.next().unwrap_or(0));
        let end = ENDS[which % ENDS.len()];
        let piece = pieces.last_mut().expect("one at least");
        match kind % 8 {
            // An event with its end.
            0..=2 => {
                let (data, _) = TABLE[which % TABLE.len()];
                let end = ENDS[usize::from(kind / 8) % ENDS.len()];
                // Where a space may be, a line may break too.
                let data = match kind % 8 {
                    0 => data.to_owned(),
                    _ => data.replacen(":[", &format!(":{end}data: ["), 1),
                };
                piece.extend(format!("data: {data}{end}{end}").bytes());
            }
            3 => piece.extend(format!("{}{end}", OTHERS[which % OTHERS.len()]).bytes()),
            4 => piece.extend(end.bytes()),
            5 => piece.push(which as u8),
            // Cut the piece in two, or begin the next.
            _ => {
                let at = which.min(piece.len());
                let rest = piece.split_off(at);
                pieces.push(rest);
            }
        }
    }
    pieces
}
