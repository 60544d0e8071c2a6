//! What is timed, for any subject.

mod crowd;
mod hop;
mod queue;

pub use crowd::closed_loop;
pub use hop::{release_to_task, release_to_thread, two_futex_hops};
pub use queue::{Line, longest_pause};

use std::hint::black_box;

use crate::subject::{Arrival, Subject};

/// `n` lifecycles: admit, first token, release.
///
/// # Panics
/// One is refused: there must be room.
#[inline]
pub fn lifecycles<S: Subject>(gate: &S, rank: Option<u32>, n: usize) {
    for _ in 0..n {
        let mut permit = gate.try_admit(black_box(rank)).expect("room");
        S::first_token(&mut permit);
    }
}

/// `n` lifecycles that go round these ranks.
///
/// # Panics
/// One is refused: there must be room.
pub fn mixed<S: Subject>(gate: &S, ranks: &[Option<u32>], n: usize) {
    for rank in ranks.iter().cycle().take(n) {
        lifecycles(gate, *rank, 1);
    }
}

/// `n` requests that never queue and are refused.
///
/// # Panics
/// One is admitted: the rank must be full.
#[inline]
pub fn refusals<S: Subject>(gate: &S, rank: Option<u32>, n: usize) {
    for _ in 0..n {
        assert!(gate.try_admit(black_box(rank)).is_none(), "it is full");
    }
}

/// `n` requests that would queue and are refused.
///
/// # Panics
/// One is not: the worker must be full, its queue too.
#[inline]
pub fn refused_requests<S: Subject>(gate: &S, rank: Option<u32>, n: usize) {
    for _ in 0..n {
        let answer = gate.request(black_box(rank));
        assert!(matches!(answer, Arrival::Refused), "it is full");
    }
}
