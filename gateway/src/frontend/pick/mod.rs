//! Which worker gets a request, of those that may have it. The ways to pick are
//! functions of what is seen; only [`Picker`] remembers anything.
//!
//! | way | file | who gets it |
//! | --- | --- | --- |
//! | `round-robin` | [`round_robin`] | the next one |
//! | `random` | [`random`] | anyone, equally likely |
//! | `least-loaded` | [`least_loaded`] | who has the fewest requests |
//! | `kv` | [`kv`] | the rank with the fewest blocks and prompt tokens on it |

pub mod kv;
pub mod least_loaded;
pub mod random;
pub mod round_robin;

use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::monitor::Load;

/// How workers are picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RouterMode {
    /// Each worker in turn
    #[default]
    RoundRobin,
    /// Any worker, equally likely
    Random,
    /// The worker with the fewest requests
    LeastLoaded,
    /// The rank with the fewest KV blocks and prompt tokens on it, which the worker is told
    Kv,
}

/// A worker that may have the request, as it is seen by a way to pick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its name. They come in order.
    pub id: u64,
    /// Its load; by `round-robin` and `random` it is not asked for.
    pub load: Load,
    /// Ranks to leave alone if there are others: busy, or refusing a moment ago.
    pub avoid: Vec<u32>,
}

/// What was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which of the candidates.
    pub at: usize,
    /// Which of its ranks, if one was chosen.
    pub rank: Option<u32>,
}

impl Choice {
    fn of(at: usize) -> Self {
        Self { at, rank: None }
    }
}

/// What the next choice depends on besides what is seen.
#[derive(Debug)]
pub struct Picker {
    mode: RouterMode,
    block_size: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Who was picked last.
    last: Option<u64>,
    dice: StdRng,
}

impl Picker {
    /// Picks by `mode`. A KV block has `block_size` tokens; `seed` is for `random`.
    #[must_use]
    pub fn new(mode: RouterMode, block_size: u32, seed: u64) -> Self {
        let state = State {
            last: None,
            dice: StdRng::seed_from_u64(seed),
        };
        Self {
            mode,
            block_size: block_size.max(1),
            state: Mutex::new(state),
        }
    }

    /// Whether it looks at candidates' loads.
    #[must_use]
    pub fn needs_load(&self) -> bool {
        matches!(self.mode, RouterMode::LeastLoaded | RouterMode::Kv)
    }

    /// Picks one; `None` without candidates. With `rank` the client names the rank,
    /// and only a worker is picked.
    pub fn pick(&self, candidates: &[Candidate], rank: Option<u32>) -> Option<Choice> {
        if candidates.is_empty() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = round_robin::next(candidates, state.last);
        let choice = match self.mode {
            RouterMode::RoundRobin => Choice::of(start),
            RouterMode::Random => Choice::of(random::at(candidates, state.dice.random())),
            RouterMode::LeastLoaded => Choice::of(least_loaded::least(candidates, start)),
            RouterMode::Kv => kv::least(candidates, start, rank, self.block_size),
        };
        state.last = Some(candidates[choice.at].id);
        Some(choice)
    }
}

#[cfg(test)]
mod tests;
