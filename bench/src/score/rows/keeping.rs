//! What comforts cost: permits that keep the gate alive, and metrics.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use metrics::NoopRecorder;
use tidegate::metrics::PREFIX;

use crate::ours::{Borrowed, Counting, Owned};
use crate::subject::Subject;
use crate::timing::alone;
use crate::work;

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, on_one_thread, on_two_threads};

pub(super) const ROWS: &[Make] = &[scraped, owned, owned_twice];

/// Far more often than anybody scrapes.
const EVERY: Duration = Duration::from_millis(10);

fn scraped() -> Row {
    Row {
        name: "counters and gauges on",
        unit: Unit::Nanoseconds,
        long: false,
        ours: published().called("tidegate, counting, published 100 times a second"),
        peers: vec![on_one_thread::<Borrowed>().called("tidegate, counters off")],
        bars: vec![Bar::times(1.1, 0).stretch(1.03)],
        note: "another thread publishes all series meanwhile",
    }
}

fn owned() -> Row {
    Row {
        name: "owned permit in place of borrowed, 1 thread",
        unit: Unit::Nanoseconds,
        long: false,
        ours: on_one_thread::<Owned>(),
        peers: vec![on_one_thread::<Borrowed>()],
        bars: vec![Bar::times(1.5, 0)],
        note: "",
    }
}

fn owned_twice() -> Row {
    const RANKS: [Option<u32>; 2] = [Some(0), Some(1)];
    Row {
        name: "owned permit in place of borrowed, 2 threads",
        ours: on_two_threads::<Owned>(2, RANKS),
        peers: vec![on_two_threads::<Borrowed>(2, RANKS)],
        note: "two ranks; each thread counts its leases on a line of its own",
        ..owned()
    }
}

fn published() -> Contender {
    let gate = Counting::build(8, 256, 256, 512);
    Contender::new(Counting::NAME, move |plan| {
        let (over, is_over) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(|| {
                let is_over = is_over;
                while is_over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    gate.gate().publish(&NoopRecorder, PREFIX);
                }
            });
            let reading = alone(plan.span, |n| work::lifecycles(&gate, Some(3), n));
            drop(over);
            reading
        })
    })
}
