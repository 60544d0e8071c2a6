//! The worker's answers: its own, and the engine's while a request holds its slot.

use super::slot::Slot;
use crate::server::answer;

pub use crate::server::answer::{error, json_body, own};

/// A body of our own, or the engine's passing through.
pub type Body = answer::Body<Slot>;

/// An answer to a client.
pub type Answer = answer::Answer<Slot>;
