//! Streaming or not.

use std::fmt;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer of one piece.
    Whole,
    /// A stream of events.
    Stream,
}

/// How long streams are.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Events with a token.
    pub tokens: u32,
    /// The time from one to the next; the first comes at once.
    pub between: Duration,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Stream];

    /// A request's body.
    #[must_use]
    pub fn body(self) -> &'static str {
        match self {
            Self::Whole => {
                r#"{"model":"bench","messages":[{"role":"user","content":"How much does a hop cost?"}],"max_tokens":32}"#
            }
            Self::Stream => {
                r#"{"model":"bench","messages":[{"role":"user","content":"How much does a hop cost?"}],"max_tokens":32,"stream":true}"#
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "not streaming",
            Self::Stream => "streaming",
        })
    }
}
