//! The calibration: arithmetic in a chain, which shares nothing and sleeps never.
//!
//! A virtual machine's cores, and a machine's with other work on it, are not
//! always there. Two threads that spin side by side on two cores end when one
//! alone would; on one core they need twice as long.

use std::fs;
use std::hint::black_box;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::{Cores, cores};

/// Steps of the chain: about a millisecond.
const STEPS: u64 = 600_000;

/// How much longer than one alone two may take and count as side by side.
const TOLERANCE: f64 = 1.3;

/// Spins once; gives when it began and ended.
pub fn spin() -> (Instant, Instant) {
    let start = Instant::now();
    let mut x = 1_u64;
    for _ in 0..STEPS {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(x);
    (start, Instant::now())
}

/// How long one spin takes alone on a core: the shortest of many.
pub fn alone() -> Duration {
    static ALONE: OnceLock<Duration> = OnceLock::new();
    *ALONE.get_or_init(|| {
        let spins = (0..50).map(|_| spin());
        spins.map(|(start, end)| end - start).min().unwrap()
    })
}

/// Whether two spins ran side by side, by their own begins and ends.
pub fn side_by_side(spins: [(Instant, Instant); 2]) -> bool {
    let start = spins[0].0.min(spins[1].0);
    let end = spins[0].1.max(spins[1].1);
    (end - start).as_secs_f64() <= TOLERANCE * alone().as_secs_f64()
}

/// What two threads' spins before and after a reading found.
pub fn found(before: [(Instant, Instant); 2], after: [(Instant, Instant); 2]) -> Cores {
    if side_by_side(before) && side_by_side(after) {
        Cores::Both
    } else {
        Cores::One
    }
}

/// How long this thread has been ready to run and had no core; 0 for ever where the
/// system does not tell.
pub(super) fn waited() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The share of `tries` in which two threads found two cores.
pub fn both_cores(tries: u32) -> f64 {
    let found = (0..tries).filter(|_| side_by_side(two()));
    found.count() as f64 / f64::from(tries)
}

/// Spins on two threads at once, each on a core of its own.
pub(super) fn two() -> [(Instant, Instant); 2] {
    alone();
    let start = &Barrier::new(2);
    thread::scope(|scope| {
        let spins = [0, 1].map(|core| {
            scope.spawn(move || {
                cores::pin(core);
                start.wait();
                spin()
            })
        });
        spins.map(|spin| spin.join().expect("it only counts"))
    })
}
