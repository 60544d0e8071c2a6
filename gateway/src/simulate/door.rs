//! A door before the engine: what it decides, and when it is asked.

use std::time::Duration;

use tidegate_policy::reason::Reason;
use tidegate_policy::shadow::Counts;
use tidegate_policy::state::EngineSample;

use super::request::Request;

/// What a door did with requests, by their numbers, in order.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// They enter the engine now.
    pub enter: Vec<u64>,
    /// They are refused: by the policy for a reason, or by the gate.
    pub refuse: Vec<(u64, Option<Reason>)>,
}

/// Something that stands before the engine.
pub(super) trait Door {
    /// A request arrives.
    fn arrives(&mut self, now: Duration, id: u64, request: &Request, moves: &mut Moves);
    /// A request that entered got its first token.
    fn first_token(&mut self, now: Duration, id: u64, moves: &mut Moves);
    /// A request that entered ended, having generated so many tokens.
    fn ends(&mut self, now: Duration, id: u64, output: u64, moves: &mut Moves);
    /// The engine was sampled.
    fn sampled(&mut self, _now: Duration, _sample: EngineSample, _moves: &mut Moves) {}
    /// The time that it asked to be woken at has come.
    fn wakes(&mut self, _now: Duration, _moves: &mut Moves) {}
    /// What it has decided, by class, if it counts.
    fn decisions(&self) -> &[Counts] {
        &[]
    }
    /// How many it holds.
    fn held(&self) -> u64 {
        0
    }
    /// The share of the limit that it uses, if it tunes that.
    fn target(&self) -> Option<f64> {
        None
    }
    /// When it wants to be woken, if at all.
    fn next_wake(&self) -> Option<Duration> {
        None
    }
}

/// No door at all.
pub(super) struct Open;

impl Door for Open {
    fn arrives(&mut self, _: Duration, id: u64, _: &Request, moves: &mut Moves) {
        moves.enter.push(id);
    }

    fn first_token(&mut self, _: Duration, _: u64, _: &mut Moves) {}

    fn ends(&mut self, _: Duration, _: u64, _: u64, _: &mut Moves) {}
}
