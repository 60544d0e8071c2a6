//! One thread.

use std::time::{Duration, Instant};

use super::{Reading, median};

/// Operations between two looks at the clock: long enough that the look, about
/// 25 ns, is lost in it.
const BATCH: usize = 1_000;

/// Nanoseconds an operation: the median over batches of 1,000, for about `span`.
///
/// `work(n)` does n operations. The median forgets batches in which the thread
/// was put off its core.
pub fn alone(span: Duration, mut work: impl FnMut(usize)) -> Reading {
    work(BATCH);
    let mut batches = Vec::new();
    let start = Instant::now();
    let mut before = start;
    while before - start < span || batches.is_empty() {
        work(BATCH);
        let after = Instant::now();
        batches.push((after - before).as_nanos() as f64 / BATCH as f64);
        before = after;
    }
    Reading::of(median(&mut batches))
}
