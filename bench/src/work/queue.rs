//! Queueing and leaving, one and all.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::subject::Subject;
use crate::timing::{Cores, Reading, cores, spin};

/// A queue of a given length behind one request that does not end.
pub struct Line<'g, S: Subject> {
    gate: &'g S,
    tickets: Vec<S::Ticket<'g>>,
    random: fastrand::Rng,
    _holder: S::Permit<'g>,
}

impl<'g, S: Subject> Line<'g, S> {
    /// So many queued requests without a rank.
    ///
    /// # Panics
    /// The gate lets in more than one, or queues fewer.
    pub fn new(gate: &'g S, length: usize) -> Self {
        let holder = gate.try_admit(None).expect("room for one");
        let tickets = (0..length).map(|_| gate.request(None).queued()).collect();
        Line {
            gate,
            tickets,
            random: fastrand::Rng::with_seed(7),
            _holder: holder,
        }
    }

    /// `n` times: one more queues at the end, and one leaves from a random place.
    pub fn queue_and_cancel(&mut self, n: usize) {
        for _ in 0..n {
            let leaves = self.random.usize(..self.tickets.len());
            self.tickets[leaves] = self.gate.request(None).queued();
        }
    }
}

/// The longest that a bystander's lifecycle took, on rank 1, in nanoseconds,
/// while `length` queued requests of rank 0 left at once; and whether both
/// threads had a core.
pub fn longest_pause<S: Subject>(length: usize) -> Reading {
    // Rank 0 holds all of its own room; what is queued waits for that.
    let gate = &S::build(2, 1, 1, length as u32);
    let holder = gate.try_admit(Some(0)).expect("room");
    let mut tickets: Vec<_> = (0..length)
        .map(|_| gate.request(Some(0)).queued())
        .collect();
    fastrand::Rng::with_seed(7).shuffle(&mut tickets);
    spin::alone();
    let start = Barrier::new(2);
    let over = AtomicBool::new(false);
    let reading = thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            cores::pin(1);
            start.wait();
            let before = spin::spin();
            start.wait();
            let (mut longest, mut calls) = (Duration::ZERO, 0);
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                super::lifecycles(gate, Some(1), 1);
                longest = longest.max(began.elapsed());
                calls += 1;
            }
            start.wait();
            (longest, calls, before, spin::spin())
        });
        let leaving = scope.spawn(|| {
            cores::pin(0);
            start.wait();
            let before = spin::spin();
            start.wait();
            drop(tickets);
            over.store(true, Ordering::Relaxed);
            start.wait();
            (before, spin::spin())
        });
        let (before, after) = leaving.join().expect("it does not panic");
        let (longest, calls, its_before, its_after) = bystander.join().expect("it does not panic");
        // One that hardly came to call was not beside them.
        let beside = calls >= 1_000;
        Reading {
            value: longest.as_nanos() as f64,
            cores: match spin::found([before, its_before], [after, its_after]) {
                Cores::Both if beside => Cores::Both,
                _ => Cores::One,
            },
        }
    });
    drop(holder);
    reading
}
