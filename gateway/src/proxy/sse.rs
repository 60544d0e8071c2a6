//! Server-sent events, cut out of a body that arrives in pieces.
//!
//! Two steps. [`Blocks`] copies the body up to each blank line, whatever way it
//! was split on the road; [`SseEvent::parse`] gives one such block to
//! `eventsource-stream`, which knows the fields. The copy is made plain on the
//! way, since the library is fed with bytes that an engine chose:
//!
//! - CR and CRLF become LF, so that an event is seen with its last byte and not
//!   with the one after it;
//! - a byte order mark is dropped, and every other byte above 0x7F becomes `?`.
//!   Only whether there is text matters here, never which; in return invalid
//!   UTF-8 can neither stall the reading nor make it grow;
//! - comments, however long, are left out;
//! - a block of more than [`MAX_EVENT_BYTES`] beside them is reported as such at once, and
//!   skipped up to its end. This bounds the memory of one stream.

use std::convert::Infallible;

use eventsource_stream::EventStream;
use futures_util::{FutureExt, StreamExt, stream};

/// The longest event that is read, in bytes. A longer one is known by its
/// length alone.
pub(crate) const MAX_EVENT_BYTES: usize = 1 << 20;

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// What lies between two blank lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block<'a> {
    /// The lines of one event, each ended by LF, without the blank one.
    Lines(&'a str),
    /// More than [`MAX_EVENT_BYTES`] without a blank line.
    TooLong,
}

/// Cuts a body into [`Block`]s.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The block so far: ASCII.
    text: String,
    /// How many bytes of a byte order mark have been seen; 3 once past it.
    mark: usize,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    /// The line is a comment.
    comment: bool,
    /// The block was too long: wait for its end.
    skipping: bool,
    /// While skipping: the last byte ended a line.
    line_ended: bool,
}

impl Blocks {
    /// Takes the next piece of the body and hands each block that it completes
    /// to `found`, until that answers `false`. The rest of the piece is then
    /// not looked at.
    pub(crate) fn feed(&mut self, piece: &[u8], mut found: impl FnMut(Block<'_>) -> bool) {
        for &byte in piece {
            if self.mark < BYTE_ORDER_MARK.len() {
                if byte == BYTE_ORDER_MARK[self.mark] {
                    self.mark += 1;
                    continue;
                }
                // Not a mark after all: what was held back is text.
                for _ in 0..self.mark {
                    self.text.push('?');
                }
                self.mark = BYTE_ORDER_MARK.len();
            }
            if !self.push(byte, &mut found) {
                return;
            }
        }
    }

    fn push(&mut self, byte: u8, found: &mut impl FnMut(Block<'_>) -> bool) -> bool {
        let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
        match byte {
            // The second half of a line end that was seen.
            b'\n' if after_cr => true,
            b'\n' | b'\r' => self.end_line(found),
            _ if self.skipping => {
                self.line_ended = false;
                true
            }
            _ if self.comment => true,
            b':' if self.text.is_empty() || self.text.ends_with('\n') => {
                self.comment = true;
                true
            }
            _ => self.add(if byte.is_ascii() { byte as char } else { '?' }, found),
        }
    }

    fn end_line(&mut self, found: &mut impl FnMut(Block<'_>) -> bool) -> bool {
        if self.skipping {
            self.skipping = !self.line_ended;
            self.line_ended = true;
            return true;
        }
        if std::mem::take(&mut self.comment) {
            return true;
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            return self.add('\n', found);
        }
        // A blank line. Several in a row end nothing.
        let more = self.text.is_empty() || found(Block::Lines(&self.text));
        self.text.clear();
        more
    }

    fn add(&mut self, char: char, found: &mut impl FnMut(Block<'_>) -> bool) -> bool {
        if self.text.len() < MAX_EVENT_BYTES {
            self.text.push(char);
            return true;
        }
        self.text = String::new();
        self.skipping = true;
        self.line_ended = char == '\n';
        found(Block::TooLong)
    }
}

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event` field, `message` if it had none.
    pub(crate) name: String,
    /// Its data lines, joined by LF. Empty for an annotation, which has a name
    /// or a comment and no data.
    pub(crate) data: String,
}

impl SseEvent {
    /// Reads one block, as [`Blocks`] cuts it.
    pub(crate) fn parse(block: &str) -> Self {
        // Line by line, because the library copies what it still holds after
        // each line. The empty data line at the end makes it hand out
        // annotations too, which a browser would drop.
        let lines = block
            .split_inclusive('\n')
            .chain(["data:\n", "\n"])
            .map(Ok::<_, Infallible>);
        let event = EventStream::new(stream::iter(lines)).next().now_or_never();
        match event {
            Some(Some(Ok(mut event))) => {
                if event.data.ends_with('\n') {
                    event.data.pop();
                }
                Self {
                    name: event.event,
                    data: event.data,
                }
            }
            // Nothing that could be read: data of unknown shape.
            _ => Self {
                name: "message".to_owned(),
                data: block.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pieces: &[&[u8]]) -> Vec<String> {
        let mut blocks = Blocks::default();
        let mut found = Vec::new();
        for piece in pieces {
            blocks.feed(piece, |block| {
                found.push(match block {
                    Block::Lines(lines) => lines.to_owned(),
                    Block::TooLong => "TOO LONG".to_owned(),
                });
                true
            });
        }
        found
    }

    #[test]
    fn every_kind_of_line_end_closes_an_event_with_its_last_byte() {
        for body in [
            "data: a\n\n",
            "data: a\r\n\r\n",
            "data: a\r\r",
            "data: a\n\r\n",
        ] {
            let almost = &body.as_bytes()[..body.trim_end().len() + 1];
            assert_eq!(blocks(&[almost]), Vec::<String>::new(), "{body:?}");
            let whole = body.trim_end_matches('\n');
            let whole = if body.ends_with("\r\n") { whole } else { body };
            assert_eq!(blocks(&[whole.as_bytes()]), ["data: a\n"], "{body:?}");
        }
    }

    #[test]
    fn a_crlf_that_is_split_in_two_is_one_line_end() {
        assert_eq!(
            blocks(&[b"data: a\r", b"\ndata: b\r", b"\n\r", b"\ndata: c\n\n"]),
            ["data: a\ndata: b\n", "data: c\n"]
        );
    }

    #[test]
    fn blank_lines_alone_are_no_events() {
        assert_eq!(blocks(&[b"\n\n\r\n\rdata: a\n\n\n\n"]), ["data: a\n"]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_even_in_pieces_and_only_at_the_start() {
        assert_eq!(blocks(&[b"\xEF", b"\xBB\xBFdata: a\n\n"]), ["data: a\n"]);
        assert_eq!(blocks(&[b"\xEF\xBBx\n\n"]), ["??x\n"]);
        assert_eq!(blocks(&[b"data: \xEF\xBB\xBF\n\n"]), ["data: ???\n"]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_text_like_any_other() {
        assert_eq!(
            blocks(&[b"data: \xFF\xC3\n\ndata: b\n\n"]),
            ["data: ??\n", "data: b\n"]
        );
    }

    #[test]
    fn an_endless_event_is_told_once_and_the_next_is_read_again() {
        let mut body = b"data: ".to_vec();
        body.resize(3 * MAX_EVENT_BYTES, b'x');
        body.extend(b"\nmore\n\ndata: b\n\n");
        assert_eq!(blocks(&[&body]), ["TOO LONG", "data: b\n"]);

        let mut held = Blocks::default();
        held.feed(&body[..MAX_EVENT_BYTES], |_| true);
        assert_eq!(held.text.capacity(), MAX_EVENT_BYTES);
        held.feed(&body[MAX_EVENT_BYTES..], |_| true);
        assert!(held.text.capacity() < 100);

        // Too long by its last line end.
        let mut body = vec![b'x'; MAX_EVENT_BYTES];
        body.extend(b"\n\ndata: b\n\n");
        assert_eq!(blocks(&[&body]), ["TOO LONG", "data: b\n"]);
    }

    #[test]
    fn comments_are_left_out_whatever_their_length() {
        let mut body = b": ".to_vec();
        body.resize(3 * MAX_EVENT_BYTES, b'x');
        body.extend(b"\r\n:\r\ndata: a:b\n: c\n:d\revent: e\n\n: alone\n\n");
        let mut held = Blocks::default();
        held.feed(&body[..2 * MAX_EVENT_BYTES], |_| {
            panic!("nothing has ended")
        });
        assert_eq!(held.text.capacity(), 0);
        assert_eq!(blocks(&[&body]), ["data: a:b\nevent: e\n"]);
    }

    #[test]
    fn reading_stops_where_it_is_told_to() {
        let mut seen = 0;
        Blocks::default().feed(b"data: a\n\ndata: b\n\n", |_| {
            seen += 1;
            false
        });
        assert_eq!(seen, 1);
    }

    #[test]
    fn fields_are_read_as_a_browser_reads_them() {
        let read = |block: &str| {
            let event = SseEvent::parse(block);
            (event.name, event.data)
        };
        let is = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        assert_eq!(
            read("data: a\ndata:b\ndata:  c\n"),
            is("message", "a\nb\n c")
        );
        assert_eq!(read("event: x\nid: 7\nretry: 1\ndata\n"), is("x", ""));
        assert_eq!(read("event: metadata\n: \"id\"\n"), is("metadata", ""));
        assert_eq!(read(": ping\n"), is("message", ""));
        assert_eq!(read("nonsense\n:\n"), is("message", ""));
    }

    #[test]
    fn many_short_lines_are_read_in_linear_time() {
        // Quadratic reading would copy some 90 GB here.
        let block = "data:\n".repeat(MAX_EVENT_BYTES / 6);
        assert_eq!(SseEvent::parse(&block).data.trim(), "");
    }
}
