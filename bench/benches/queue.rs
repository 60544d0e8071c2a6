//! Queueing and leaving, and the way from a release to the waiter.

use std::task::Poll;
use std::thread;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use tidegate_bench::ours::{Borrowed, Dispatched};
use tidegate_bench::peers::{MutexGate, TokioPair};
use tidegate_bench::selfcheck;
use tidegate_bench::subject::{Subject, poll_once};
use tidegate_bench::timing::cores::on_core;
use tidegate_bench::work::{Line, release_to_thread, two_futex_hops};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    row::<Borrowed>(&mut criterion);
    row::<Dispatched>(&mut criterion);
    row::<MutexGate>(&mut criterion);
    row::<TokioPair>(&mut criterion);
    hops(&mut criterion, "two raw futex hops", two_futex_hops);
    criterion.final_summary();
}

fn row<S: Subject>(criterion: &mut Criterion) {
    selfcheck::check::<S>();
    leaving::<S>(criterion);
    handing_over::<S>(criterion);
    let gate = on_core(1, || S::build(1, 1, 1, 1));
    hops(criterion, S::NAME, |n| release_to_thread(&gate, 0, n));
}

/// Queue, and one of a thousand others leaves.
fn leaving<S: Subject>(criterion: &mut Criterion) {
    let gate = S::build(1, 1, 1, 1_001);
    let mut line = Line::new(&gate, 1_000);
    criterion
        .benchmark_group("queue and cancel")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| line.queue_and_cancel(1));
        });
}

/// Queue, release, take the offer up: a hand-over without a thread to wake.
fn handing_over<S: Subject>(criterion: &mut Criterion) {
    let gate = S::build(1, 1, 1, 1);
    criterion
        .benchmark_group("release to ticket")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            let mut holder = gate.try_admit(None);
            b.iter(|| {
                let mut ticket = gate.request(None).queued();
                drop(holder.take());
                holder = loop {
                    if let Poll::Ready(permit) = poll_once(&mut ticket) {
                        break Some(permit);
                    }
                    // The dispatcher's turn has not ended.
                    thread::yield_now();
                };
            });
        });
}

/// From before the release to the first instruction of a thread that is parked on the
/// same core; what has a dispatcher thread has it on another.
fn hops(criterion: &mut Criterion, name: &str, hops: impl Fn(usize) -> Vec<f64> + Sync) {
    criterion
        .benchmark_group("release to parked thread")
        .sample_size(20)
        .measurement_time(Duration::from_secs(2))
        .bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|n| {
                let nanoseconds: f64 = on_core(0, || hops(n as usize)).iter().sum();
                Duration::from_nanos(nanoseconds as u64)
            });
        });
}
