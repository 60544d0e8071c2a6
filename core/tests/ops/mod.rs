//! Scripts of operations on a gate, and what must hold after each of them.
//!
//! A script is run on three gates at once: the public one, the sequential one
//! of `tidegate::spec`, and a deliberately naive restatement of the rules. All
//! three must agree, and the invariants that need none of them must hold.
//! The property tests and the fuzz target both include this module.

pub mod invariants;
pub mod naive;
pub mod run;

use tidegate::{EngineReport, Settings};

/// Limits to build a gate with, and what then happens to it.
#[derive(Clone, Debug)]
pub struct Script {
    pub settings: Settings,
    pub ops: Vec<Op>,
}

/// One step. Tickets and permits are meant by their place among those that
/// exist, counted round; where none exists the step does nothing.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    TryAdmit(Who),
    Request(Who),
    EnterIfRoom(Who),
    GoneOnArrival(Who),
    /// Polls a ticket once.
    Take(u8),
    Cancel(u8),
    FirstToken(u8),
    Release(u8),
    SetLimits(Settings),
    Report(Report),
}

/// Which rank a request names: 0 none, 1 to 8 one that may have been reported,
/// 9 one that never is; more counts round.
#[derive(Clone, Copy, Debug)]
pub struct Who(pub u8);

/// The first so many ranks, in an order that is not theirs; from 10 on with a duplicate.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub ranks: u8,
    pub max_num_seqs: Option<u32>,
}

/// Ids in no order, with the extremes among them.
const RANKS: [u32; 8] = [7, 0, 1_000_000, 3, u32::MAX, 4, 1, 64];
const NEVER_REPORTED: u32 = 99;

impl Who {
    pub fn rank(self) -> Option<u32> {
        match self.0 % 10 {
            0 => None,
            9 => Some(NEVER_REPORTED),
            n => Some(RANKS[usize::from(n) - 1]),
        }
    }
}

impl Report {
    pub fn engine(self) -> EngineReport {
        let mut ranks = RANKS[..usize::from(self.ranks).min(8)].to_vec();
        if self.ranks >= 10 {
            ranks.push(RANKS[0]);
        }
        EngineReport {
            ranks,
            max_num_seqs: self.max_num_seqs,
        }
    }
}
