//! What is held on the heap.

use std::mem::forget;
use std::thread;
use std::time::Duration;

use crate::heap::grown_by;
use crate::ours::Borrowed;
use crate::peers::MutexGate;
use crate::subject::Subject;
use crate::timing::Reading;

use super::super::{Bar, Contender, Row, Unit};
use super::Make;

pub(super) const ROWS: &[Make] = &[queued, rank, itself];

fn queued() -> Row {
    Row {
        name: "memory, a queued request",
        unit: Unit::Bytes,
        long: true,
        ours: of_queued::<Borrowed>(),
        peers: vec![of_queued::<MutexGate>()],
        bars: vec![Bar::absolute(160.0)],
        note: "at 40,000 queued, without the callers' tickets",
    }
}

fn rank() -> Row {
    Row {
        name: "memory, a rank",
        ours: of_ranks(),
        peers: vec![],
        bars: vec![Bar::absolute(256.0)],
        note: "65 ranks less 1, over 64, with counters off; their stripes are 2,560 bytes a rank",
        ..queued()
    }
}

fn itself() -> Row {
    Row {
        name: "memory, the gate itself",
        ours: of_gates(),
        peers: vec![],
        bars: vec![],
        note: "with no ranks reported, nothing queued and counters off; 2,560 of it count leases; its thread's \
               stack not",
        ..queued()
    }
}

fn of_queued<S: Subject>() -> Contender {
    const COUNT: usize = 40_000;
    Contender::new(S::NAME, |_| {
        let gate = S::build(1, 1, 1, COUNT as u32);
        forget(gate.try_admit(None));
        let mut tickets = Vec::with_capacity(COUNT);
        let (bytes, ()) = grown_by(|| {
            tickets.extend((0..COUNT).map(|_| gate.request(None).queued()));
            gate.held();
        });
        drop(tickets);
        // A gate that goes is freed by its thread, later: in somebody's reading.
        forget(gate);
        Reading::of(bytes as f64 / COUNT as f64)
    })
}

fn of_ranks() -> Contender {
    let size = |ranks| grown_by(|| built(ranks)).0;
    Contender::new(Borrowed::NAME, move |_| {
        Reading::of((size(65) - size(1)) as f64 / 64.0)
    })
}

fn of_gates() -> Contender {
    Contender::new(Borrowed::NAME, |_| {
        Reading::of(grown_by(|| built(0)).0 as f64)
    })
}

/// A gate that stays, with its thread under way.
fn built(ranks: u32) {
    forget(Borrowed::build(ranks, 1, 1, 1));
    thread::sleep(Duration::from_millis(5));
}
