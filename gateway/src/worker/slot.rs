//! What an admitted request holds.

use std::sync::Arc;

use http::HeaderMap;
use tidegate::OwnedPermit;

use super::prompts::{Prompt, Prompts};
use crate::policy::Inside;
use crate::proxy::relay::Hold;
use crate::server::drain::Drain;

/// A request's permit. Dropping it gives the permit back and counts it as done.
#[derive(Debug)]
pub struct Slot {
    permit: OwnedPermit,
    /// What it is to the policy. Below the permit: whoever hears that it ended finds
    /// the room that it left.
    inside: Option<Inside>,
    /// Its part of the prompt tokens that the engine reads, if they are counted.
    prompt: Option<Prompt>,
    /// Events that have passed: about as many tokens.
    events: u64,
    drain: Arc<Drain>,
}

impl Slot {
    /// Holds `permit` until this is dropped, which `drain` then hears of.
    pub(super) fn new(permit: OwnedPermit, drain: Arc<Drain>) -> Self {
        Self {
            permit,
            inside: None,
            prompt: None,
            events: 0,
            drain,
        }
    }

    /// The policy follows it.
    pub(super) fn followed(mut self, inside: Inside) -> Self {
        self.inside = Some(inside);
        self
    }

    /// Its prompt, of a request with these headers, counts among `prompts` until its first
    /// token.
    pub(super) fn reads(&mut self, prompts: &Arc<Prompts>, headers: &HeaderMap) {
        self.prompt = Some(prompts.enters(self.permit.lane(), headers));
    }

    /// The engine answered with an error: there is nothing to learn from it.
    pub(super) fn failed(&mut self) {
        self.inside = None;
    }
}

impl Hold for Slot {
    fn first_token(&mut self) {
        self.permit.first_token();
        self.prompt = None;
        if let Some(inside) = &mut self.inside {
            inside.first_token();
        }
    }

    fn passed(&mut self, piece: &[u8]) {
        if self.inside.is_some() {
            self.events += events(piece);
        }
    }

    fn ended(&mut self, whole: bool) {
        if let Some(inside) = self.inside.take()
            && whole
        {
            inside.ended((self.events > 0).then_some(self.events));
        }
    }
}

/// Lines that hold an event's data, but for one that is split between pieces.
fn events(piece: &[u8]) -> u64 {
    let lines = piece.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"data:")).count() as u64
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.drain.done();
    }
}
