//! When a request stops waiting and when it stops running, read off the
//! response while it passes.
//!
//! Waiting ends at the first server-sent event with generated content (text,
//! reasoning, a tool call, token ids) or a finish reason. Comments, keep-alives,
//! roles, empty deltas, usage and annotations do not count; a data event of
//! unknown shape does, and so does an event too long to be read: 1 MiB, comments
//! aside. Running ends
//! at `[DONE]`, `message_stop` (or a response's `response.completed`), or an
//! error event. The end of the body ends both, for any kind of body, and is
//! seen by whoever reads it: the watcher only reads event streams. One that comes
//! compressed, which no one asked for, cannot be read: its first bytes count as
//! the first token.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::shapes::{Meaning, may_end, meaning};
use super::sse::{Block, Blocks, SseEvent};

/// What a piece of a response brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first generated content is in it.
    FirstToken,
    /// The last event is in it; the first token was too, if not seen before.
    End,
}

/// Watches one response body. Nothing it reads is changed or held back, and it
/// holds at most 1 MiB.
#[derive(Debug)]
pub struct Watcher {
    /// `None` when there is nothing (more) to look for.
    blocks: Option<Blocks>,
    first_token: bool,
    /// Events, but not to be read: compressed.
    sealed: bool,
}

impl Watcher {
    /// A watcher for a response with these headers: reads events if they say
    /// `text/event-stream`, and tells nothing otherwise.
    #[must_use]
    pub fn for_response(headers: &HeaderMap) -> Self {
        let (stream, sealed) = (is_events(headers), is_sealed(headers));
        Self {
            sealed: stream && sealed,
            ..if stream && !sealed {
                Self::for_events()
            } else {
                Self::for_nothing()
            }
        }
    }

    /// A watcher for a body of server-sent events.
    #[must_use]
    pub fn for_events() -> Self {
        Self {
            blocks: Some(Blocks::default()),
            first_token: false,
            sealed: false,
        }
    }

    /// A watcher that tells nothing: only the end of the body counts.
    #[must_use]
    pub fn for_nothing() -> Self {
        Self {
            blocks: None,
            first_token: false,
            sealed: false,
        }
    }

    /// Takes the next piece of the body, split anywhere, and tells the furthest
    /// event that it brought. Each is told once; nothing follows the end.
    pub fn feed(&mut self, piece: &[u8]) -> Option<Event> {
        if self.sealed && !piece.is_empty() {
            self.sealed = false;
            return Some(Event::FirstToken);
        }
        let blocks = self.blocks.as_mut()?;
        let mut brought = None;
        let mut first_token = self.first_token;
        blocks.feed(piece, |block| match read(&block, first_token) {
            Meaning::Nothing => true,
            Meaning::Generated => {
                if !first_token {
                    first_token = true;
                    brought = Some(Event::FirstToken);
                }
                true
            }
            Meaning::Ends => {
                brought = Some(Event::End);
                false
            }
        });
        self.first_token = first_token;
        if brought == Some(Event::End) {
            self.blocks = None;
        }
        brought
    }
}

/// Whether a response with these headers is a stream of events that can be read.
#[must_use]
pub fn has_events(headers: &HeaderMap) -> bool {
    is_events(headers) && !is_sealed(headers)
}

fn is_events(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Compressed.
fn is_sealed(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Once the first token has come, only events that could be the end are read.
fn read(block: &Block<'_>, first_token: bool) -> Meaning {
    match block {
        Block::TooLong => Meaning::Generated,
        Block::Lines(lines) if first_token && !may_end(lines) => Meaning::Nothing,
        Block::Lines(lines) => meaning(&SseEvent::parse(lines)),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::super::sse::MAX_EVENT_BYTES;
    use super::*;

    #[test]
    fn only_event_streams_are_read() {
        let told = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            Watcher::for_response(&headers).feed(b"data: a\n\n")
        };
        assert_eq!(told("text/event-stream"), Some(Event::FirstToken));
        assert_eq!(
            told("Text/Event-Stream; charset=utf-8"),
            Some(Event::FirstToken)
        );
        assert_eq!(told("application/json"), None);
        assert_eq!(
            Watcher::for_response(&HeaderMap::new()).feed(b"data: a\n\n"),
            None
        );
    }

    #[test]
    fn a_stream_that_came_compressed_begins_with_its_first_bytes() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("Identity"));
        assert_eq!(Watcher::for_response(&headers).feed(b"\x1f\x8b"), None);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let mut watcher = Watcher::for_response(&headers);
        assert_eq!(watcher.feed(b""), None);
        assert_eq!(watcher.feed(b"\x1f\x8b"), Some(Event::FirstToken));
        assert_eq!(watcher.feed(b"data: [DONE]\n\n"), None);
    }

    #[test]
    fn each_event_is_told_once_and_nothing_follows_the_end() {
        let mut watcher = Watcher::for_events();
        assert_eq!(watcher.feed(b": hello\n\n"), None);
        assert_eq!(
            watcher.feed(b"data: a\n\ndata: b\n\n"),
            Some(Event::FirstToken)
        );
        assert_eq!(watcher.feed(b"data: c\n\n"), None);
        assert_eq!(
            watcher.feed(b"data: [DONE]\n\ndata: d\n\n"),
            Some(Event::End)
        );
        assert_eq!(watcher.feed(b"data: [DONE]\n\n"), None);
    }

    #[test]
    fn a_whole_answer_in_one_piece_tells_its_end() {
        assert_eq!(
            Watcher::for_events().feed(b"data: a\n\ndata: [DONE]\n\n"),
            Some(Event::End)
        );
    }

    #[test]
    fn the_word_error_in_generated_text_ends_nothing() {
        let mut watcher = Watcher::for_events();
        watcher.feed(b"data: a\n\n");
        let text = br#"data: {"choices":[{"delta":{"content":"an error [DONE] message_stop"}}]}"#;
        assert_eq!(watcher.feed(text), None);
        assert_eq!(watcher.feed(b"\n\n"), None);
    }

    #[test]
    fn an_endless_event_counts_as_a_token_and_the_end_is_still_seen() {
        let mut watcher = Watcher::for_events();
        let piece = vec![b'x'; MAX_EVENT_BYTES / 2];
        assert_eq!(watcher.feed(b"data: "), None);
        assert_eq!(watcher.feed(&piece), None);
        assert_eq!(watcher.feed(&piece), Some(Event::FirstToken));
        assert_eq!(watcher.feed(&piece), None);
        assert_eq!(watcher.feed(b"\n\ndata: [DONE]\n\n"), Some(Event::End));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_the_same_in_one_piece_and_byte_by_byte(
            bytes in proptest::collection::vec(
                prop_oneof![proptest::sample::select(b"\r\n:data [DONE]{}\"error".to_vec()), any::<u8>()],
                0..300,
            ),
        ) {
            let mut whole = Watcher::for_events();
            let at_once = whole.feed(&bytes);
            let mut split = Watcher::for_events();
            let one_by_one = bytes.iter().filter_map(|byte| split.feed(&[*byte])).last();
            prop_assert_eq!(at_once, one_by_one);
        }
    }
}
