//! Queueing, and leaving the queue.

use crate::ours::Borrowed;
use crate::peers::MutexGate;
use crate::subject::Subject;
use crate::timing::alone;
use crate::work::{self, Line};

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, leaked};

pub(super) const ROWS: &[Make] = &[among_100, among_40_000, all_leave];

const CROWD: usize = 40_000;

fn among_100() -> Row {
    Row {
        name: "queue and cancel one, 100 queued",
        unit: Unit::Nanoseconds,
        long: false,
        ours: queue_and_cancel::<Borrowed>(100),
        peers: vec![queue_and_cancel::<MutexGate>(100)],
        bars: vec![Bar::times(1.0, 0)],
        note: "one queues at the end and one leaves from a random place; nothing waits on either",
    }
}

fn among_40_000() -> Row {
    Row {
        name: "queue and cancel one, 40,000 queued",
        ours: queue_and_cancel::<Borrowed>(CROWD),
        peers: vec![queue_and_cancel::<MutexGate>(CROWD)],
        bars: vec![Bar::times(0.05, 0)],
        ..among_100()
    }
}

fn all_leave() -> Row {
    Row {
        name: "40,000 leave at once, longest pause of another",
        unit: Unit::Nanoseconds,
        long: true,
        ours: pause::<Borrowed>(),
        peers: vec![pause::<MutexGate>()],
        bars: vec![Bar::times(0.02, 0)],
        note: "one thread cancels all in random order; the longest lifecycle meanwhile of a thread \
               on another rank, the scheduler's pauses included",
    }
}

fn queue_and_cancel<S: Subject>(length: usize) -> Contender {
    let gate: &'static S = leaked(1, 1, 1, length as u32 + 1);
    let mut line = Line::new(gate, length);
    Contender::new(S::NAME, move |plan| {
        alone(plan.span, |n| line.queue_and_cancel(n))
    })
}

fn pause<S: Subject>() -> Contender {
    Contender::new(S::NAME, |_| work::longest_pause::<S>(CROWD))
}
