//! How many tokens there were, read off an answer while it passes.
//!
//! The prompt's come from the engine's `usage`, wherever it stands: the name of the
//! member with its closing quote cannot occur within a JSON text, where quotes are
//! escaped. Output tokens are taken to be as many as there are events with data,
//! which is what engines send.

use memchr::memmem;

/// The members that count the prompt: OpenAI's, then Anthropic's.
const PROMPT: [&[u8]; 2] = [b"prompt_tokens\"", b"input_tokens\""];

/// What begins an event.
const DATA: &[u8] = b"data:";

/// What is kept of a piece, since the next may go on in the middle of a name or of
/// a number.
const KEPT: usize = 48;

/// Reads one answer, in pieces that are split anywhere.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    tail: Vec<u8>,
}

/// What a piece told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Tokens of the prompt. May be told again.
    pub prompt: Option<u64>,
    /// Events that began in this piece.
    pub events: u64,
}

impl Tokens {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) -> Told {
        let before = self.tail.len();
        let mut seam = std::mem::take(&mut self.tail);
        seam.extend_from_slice(&piece[..piece.len().min(KEPT)]);
        let events = events(piece) + events_across(&seam, before);
        let prompt = prompt(piece).or_else(|| prompt(&seam));
        // A piece that is longer than this alone is what is kept.
        let cut = seam.len().saturating_sub(KEPT);
        seam.drain(..cut);
        if let Some(last) = piece.last_chunk::<KEPT>() {
            seam.clear();
            seam.extend_from_slice(last);
        }
        self.tail = seam;
        Told { prompt, events }
    }
}

/// Events that begin in a piece, at its start or a line's.
fn events(piece: &[u8]) -> u64 {
    memmem::find_iter(piece, DATA)
        .filter(|&at| at > 0 && is_line_end(piece[at - 1]))
        .count() as u64
}

/// Those that only the seam shows: they begin before `before`, or right there.
fn events_across(seam: &[u8], before: usize) -> u64 {
    memmem::find_iter(seam, DATA)
        .filter(|&at| at <= before && at + DATA.len() > before)
        .filter(|&at| at == 0 || is_line_end(seam[at - 1]))
        .count() as u64
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// The last whole number of the prompt's tokens in here.
fn prompt(text: &[u8]) -> Option<u64> {
    PROMPT.iter().find_map(|name| {
        let at = memmem::rfind(text, name)?;
        number(&text[at + name.len()..])
    })
}

/// The number behind a colon, if something comes after it.
fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start().strip_prefix(b":")?;
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits == text.len() {
        return None;
    }
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Told {
        let mut tokens = Tokens::default();
        let mut sum = Told::default();
        for piece in pieces {
            let told = tokens.feed(piece.as_ref());
            sum.prompt = told.prompt.or(sum.prompt);
            sum.events += told.events;
        }
        sum
    }

    const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"data: \\\"prompt_tokens\\\": 7,\"}}]}\n\n\
        data: {\"x\":1}\r\n\r\ndata: {\"usage\":{\"prompt_tokens\" : 123,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

    #[test]
    fn the_prompt_and_the_events_are_counted() {
        let told = all([STREAM]);
        assert_eq!(told.prompt, Some(123));
        assert_eq!(told.events, 4);
        let whole =
            r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"x":1}}"#;
        assert_eq!(all([whole]).prompt, Some(9));
        assert_eq!(all([r#"{"usage":{"input_tokens":5}}"#]).prompt, Some(5));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "\"prompt_tokens\":null,",
            "\"prompt_tokens\":-1,",
            "\"prompt_tokens\":99999999999999999999999,",
            "\"prompt_tokens\"",
            "\\\"prompt_tokens\\\": 7,",
        ] {
            assert_eq!(all([text]).prompt, None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_pieces_are_split(cuts in proptest::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &STREAM.as_bytes()[pair[0]..pair[1]]);
            prop_assert_eq!(all(pieces), all([STREAM]));
        }

        #[test]
        fn any_bytes_are_taken(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..90), 0..6)) {
            let _ = all(pieces);
        }
    }
}
