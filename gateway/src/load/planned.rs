//! One request to be sent.

use std::time::Duration;

/// One request to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// When it starts, from the beginning of the schedule.
    pub at: Duration,
    /// Length of its prompt, in tokens.
    pub prompt_tokens: u32,
    /// Tokens it wants generated.
    pub output_tokens: u32,
    /// The data-parallel rank it names, if any.
    pub rank: Option<u32>,
    /// The client leaves this long after the start, unless it has its answer.
    pub leaves_after: Option<Duration>,
}
