//! Two threads at once.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::{Cores, Reading, cores, spin};

/// Operations between two looks at the clock.
const BATCH: usize = 500;

/// One in so many of a reading may go by while a thread waits for a core.
const WAITED_AT_MOST: u32 = 50;

/// Nanoseconds an operation when two threads do them at once, for about `span`:
/// the time over the number that both did together.
///
/// `work(thread, n)` does n operations as thread 0 or 1, each on a core of its own.
/// Both threads stand at a barrier first, spin before and after, and the reading says whether both
/// spins found two cores and neither thread had to wait for its own in between: a
/// thread that parks goes of itself, which is the lock's cost and counts.
pub fn pair(span: Duration, work: impl Fn(usize, usize) + Sync) -> Reading {
    spin::alone();
    let barrier = &Barrier::new(2);
    let work = &work;
    let one = move |index: usize| {
        cores::pin(index);
        work(index, BATCH);
        barrier.wait();
        let before = spin::spin();
        barrier.wait();
        let waited_before = spin::waited();
        let start = Instant::now();
        let mut done = 0;
        while start.elapsed() < span {
            work(index, BATCH);
            done += BATCH;
        }
        let took = start.elapsed();
        let rate = done as f64 / took.as_nanos() as f64;
        let lost = spin::waited() - waited_before > took / WAITED_AT_MOST;
        barrier.wait();
        (rate, before, spin::spin(), lost)
    };
    let [a, b] = thread::scope(|scope| {
        let threads = [0, 1].map(|index| scope.spawn(move || one(index)));
        threads.map(|thread| thread.join().expect("the work does not panic"))
    });
    Reading {
        value: 1.0 / (a.0 + b.0),
        cores: match spin::found([a.1, b.1], [a.2, b.2]) {
            Cores::Both if !a.3 && !b.3 => Cores::Both,
            _ => Cores::One,
        },
    }
}
