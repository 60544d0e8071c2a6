//! Being refused.

use crate::ours::Borrowed;
use crate::peers::{MutexGate, TokioPair};
use crate::subject::Subject;
use crate::timing::{alone, pair};
use crate::work;

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, leaked};

pub(super) const ROWS: &[Make] = &[one_word, one_word_twice, scope, scope_twice];

fn one_word() -> Row {
    Row {
        name: "refusal decided on one word, 1 thread",
        unit: Unit::Nanoseconds,
        long: false,
        ours: full_rank::<Borrowed>(1),
        peers: vec![full_rank::<MutexGate>(1), full_rank::<TokioPair>(1)],
        bars: vec![Bar::times(0.55, 0), Bar::wish(1.0, 1)],
        note: "try_admit for a full rank of a worker that is not full, R = W = 1; the answer \
               names limit, counts and scope (the semaphores' does not)",
    }
}

fn one_word_twice() -> Row {
    Row {
        name: "refusal decided on one word, 2 threads",
        ours: full_rank::<Borrowed>(2),
        peers: vec![full_rank::<MutexGate>(2), full_rank::<TokioPair>(2)],
        bars: vec![Bar::times(0.3, 0), Bar::wish(1.0, 1)],
        note: "both threads ask for the same full rank",
        ..one_word()
    }
}

fn scope() -> Row {
    Row {
        name: "refusal that looks at 8 ranks, 1 thread",
        unit: Unit::Nanoseconds,
        long: false,
        ours: full_worker::<Borrowed>(1),
        peers: vec![full_worker::<MutexGate>(1)],
        bars: vec![Bar::times(4.0, 0).stretch(1.5)],
        note: "request for a rank of a worker that is full, its queue too",
    }
}

fn scope_twice() -> Row {
    Row {
        name: "refusal that looks at 8 ranks, 2 threads",
        ours: full_worker::<Borrowed>(2),
        peers: vec![full_worker::<MutexGate>(2)],
        bars: vec![Bar::times(1.5, 0).stretch(1.0)],
        ..scope()
    }
}

fn full_rank<S: Subject>(threads: usize) -> Contender {
    // Semaphores have no ranks: theirs is full as a whole.
    let ranks = if S::RULES.ranks { 8 } else { 1 };
    let gate: &'static S = leaked(ranks, 1, 1, 1);
    let held = gate.try_admit(Some(3)).expect("room");
    Contender::new(S::NAME, move |plan| {
        let _held = &held;
        if threads == 1 {
            alone(plan.span, |n| work::refusals(gate, Some(3), n))
        } else {
            pair(plan.span, |_, n| work::refusals(gate, Some(3), n))
        }
    })
}

fn full_worker<S: Subject>(threads: usize) -> Contender {
    let gate: &'static S = leaked(8, 1, 1, 1);
    let held: Vec<_> = (0..8).map(|rank| gate.try_admit(Some(rank))).collect();
    let queued: Vec<_> = (0..8).map(|_| gate.request(None).queued()).collect();
    let held = (held, queued);
    Contender::new(S::NAME, move |plan| {
        let _held = &held;
        if threads == 1 {
            alone(plan.span, |n| work::refused_requests(gate, Some(3), n))
        } else {
            pair(plan.span, |_, n| work::refused_requests(gate, Some(3), n))
        }
    })
}
