//! Plain threads, each with a schedule of its own, parked while they wait.

use std::sync::Barrier;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use crate::subject::{Arrival, Subject};

use super::engine::serve;
use super::schedule::{arrivals, sleep_exactly, sleep_until};
use super::tally::record;
use super::{CANCELS, Shape, Tally};

/// What `shape.callers` threads saw.
///
/// A thread hands what was admitted to the engine and goes on. While it waits
/// in the queue it can be late for its next arrival; the lateness is part of
/// that one's latency.
pub fn threads<S: Subject>(shape: &Shape) -> Tally {
    let gate = S::build(1, shape.limit(), shape.limit(), shape.limit());
    let barrier = Barrier::new(shape.callers as usize);
    thread::scope(|scope| {
        let (to_engine, admitted) = mpsc::channel();
        scope.spawn(move || serve::<S>(admitted, shape.service));
        let callers: Vec<_> = (0..shape.callers)
            .map(|caller| {
                let (gate, barrier, to_engine) = (&gate, &barrier, to_engine.clone());
                scope.spawn(move || {
                    sleep_exactly();
                    barrier.wait();
                    call(gate, shape, shape.seed + u64::from(caller), &to_engine)
                })
            })
            .collect();
        drop(to_engine);
        let mut all = Tally::default();
        for caller in callers {
            all.merge(&caller.join().expect("it does not panic"));
        }
        all
    })
}

fn call<'g, S: Subject>(
    gate: &'g S,
    shape: &Shape,
    seed: u64,
    to_engine: &Sender<(Instant, S::Permit<'g>)>,
) -> Tally {
    let mut tally = Tally::default();
    let mut random = fastrand::Rng::with_seed(seed);
    let start = Instant::now();
    for at in arrivals(shape.rate() / f64::from(shape.callers), shape.span, seed) {
        let intended = start + at;
        sleep_until(intended);
        let permit = match gate.request(None) {
            Arrival::Refused => {
                record(&mut tally.refused, intended);
                continue;
            }
            Arrival::Queued(ticket) if random.u32(..CANCELS) == 0 => {
                drop(ticket);
                record(&mut tally.cancelled, intended);
                continue;
            }
            Arrival::Queued(ticket) => S::wait(ticket),
            Arrival::Admitted(permit) => permit,
        };
        record(&mut tally.admitted, intended);
        let handed = to_engine.send((Instant::now(), permit));
        assert!(handed.is_ok(), "the engine outlives its callers");
    }
    tally
}
