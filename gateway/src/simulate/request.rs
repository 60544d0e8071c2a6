//! A request to come.

use std::time::Duration;

use tidegate_policy::class::ClassId;

/// A request to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When it arrives, from the start of the simulation.
    pub at: Duration,
    /// Its service class.
    pub class: ClassId,
    /// Length of its prompt, in tokens.
    pub prompt_tokens: u32,
    /// Tokens that it generates; known to the engine only.
    pub output_tokens: u32,
}
