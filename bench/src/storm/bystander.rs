//! Who is not concerned, and measured.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::subject::Subject;
use crate::timing::cores;

/// What a bystander saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Nanoseconds of each lifecycle: admit, first token, release.
    pub lifecycles: Histogram<u64>,
    /// Requests that were refused.
    pub refused: u64,
}

impl Default for Seen {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3);
        Seen {
            lifecycles: histogram.expect("the bounds are in order"),
            refused: 0,
        }
    }
}

impl Seen {
    /// Adds what was seen another time.
    pub fn merge(&mut self, other: &Seen) {
        let added = self.lifecycles.add(&other.lifecycles);
        added.expect("all have the same bounds");
        self.refused += other.refused;
    }
}

/// What a bystander on `rank` sees while `storm` runs on another core.
pub(super) fn while_it_lasts<S: Subject>(
    gate: &S,
    rank: Option<u32>,
    storm: impl FnOnce() + Send,
) -> Seen {
    let start = Barrier::new(2);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            cores::pin(1);
            let mut seen = Seen::default();
            start.wait();
            // Relaxed: it only has to end some time after.
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                match gate.try_admit(rank) {
                    Some(mut permit) => S::first_token(&mut permit),
                    None => seen.refused += 1,
                }
                let took = began.elapsed().as_nanos() as u64;
                seen.lifecycles.saturating_record(took.max(1));
            }
            seen
        });
        cores::on_core(0, || {
            start.wait();
            storm();
        });
        over.store(true, Ordering::Relaxed);
        bystander.join().expect("it does not panic")
    })
}
