//! What one request costs: entering, being refused, queueing and leaving, and
//! the way from a release to the waiter.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use tidegate_bench::ours::{Borrowed, Owned};
use tidegate_bench::peers::MutexGate;
use tidegate_bench::selfcheck;
use tidegate_bench::subject::Subject;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    row::<Borrowed>(&mut criterion);
    row::<Owned>(&mut criterion);
    row::<MutexGate>(&mut criterion);
    criterion.final_summary();
}

/// All figures of one row, once it has shown that it is a gate.
fn row<S: Subject>(criterion: &mut Criterion) {
    selfcheck::check::<S>();
    direct::<S>(criterion, "direct ranked", Some(3));
    direct::<S>(criterion, "direct unranked", None);
    refusals::<S>(criterion);
    leaving::<S>(criterion);
    handing_over::<S>(criterion);
    release_to_parked_thread::<S>(criterion);
}

/// Admit, first token, release, with nobody else there.
fn direct<S: Subject>(criterion: &mut Criterion, group: &str, rank: Option<u32>) {
    let gate = S::build(8, 256, 256, 512);
    criterion
        .benchmark_group(group)
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| {
                let mut permit = gate.try_admit(black_box(rank)).expect("room");
                S::first_token(&mut permit);
                permit
            });
        });
}

/// A full rank, and a full worker with a full queue.
fn refusals<S: Subject>(criterion: &mut Criterion) {
    let gate = S::build(8, 1, 1, 1);
    let permits: Vec<_> = (0..8).map(|rank| gate.try_admit(Some(rank))).collect();
    criterion
        .benchmark_group("refusal try_admit")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| assert!(gate.try_admit(black_box(Some(3))).is_none()));
        });
    let tickets: Vec<_> = (0..8).map(|_| gate.request(None).queued()).collect();
    criterion.benchmark_group("refusal request").bench_function(
        BenchmarkId::from_parameter(S::NAME),
        |b| {
            b.iter(|| black_box(gate.request(black_box(Some(3)))));
        },
    );
    drop((tickets, permits));
}

/// Queue and leave again, behind a thousand others.
fn leaving<S: Subject>(criterion: &mut Criterion) {
    let gate = S::build(1, 1, 1, 2_000);
    let holder = gate.try_admit(None);
    let others: Vec<_> = (0..1_000).map(|_| gate.request(None).queued()).collect();
    criterion
        .benchmark_group("queue and cancel")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter(|| drop(gate.request(black_box(None)).queued()));
        });
    drop((others, holder));
}

/// Queue, release, take the offer up: the work of a hand-over without a thread
/// to wake.
fn handing_over<S: Subject>(criterion: &mut Criterion) {
    let gate = S::build(1, 1, 1, 1);
    criterion
        .benchmark_group("release to ticket")
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            let mut holder = gate.try_admit(None);
            b.iter(|| {
                let mut ticket = gate.request(None).queued();
                drop(holder.take());
                let mut context = Context::from_waker(Waker::noop());
                holder = loop {
                    if let Poll::Ready(permit) = Pin::new(&mut ticket).poll(&mut context) {
                        break Some(permit);
                    }
                    thread::yield_now();
                };
            });
        });
}

/// From the moment before the release to the moment when the parked thread runs.
fn release_to_parked_thread<S: Subject>(criterion: &mut Criterion) {
    /// Long enough for the waiter to be asleep when the release comes.
    const ASLEEP: Duration = Duration::from_micros(50);
    let gate = &S::build(1, 1, 1, 1);
    criterion
        .benchmark_group("release to parked thread")
        .sample_size(20)
        .measurement_time(Duration::from_secs(2))
        .bench_function(BenchmarkId::from_parameter(S::NAME), |b| {
            b.iter_custom(|iterations| {
                thread::scope(|scope| {
                    let (hand, handed) = mpsc::channel::<S::Ticket<'_>>();
                    let (tell, told) = mpsc::channel();
                    scope.spawn(move || {
                        for ticket in handed {
                            let permit = S::wait(ticket);
                            let now = Instant::now();
                            drop(permit);
                            tell.send(now).expect("somebody measures");
                        }
                    });
                    let mut total = Duration::ZERO;
                    for _ in 0..iterations {
                        let holder = gate.try_admit(None).expect("the last one left");
                        let sent = hand.send(gate.request(None).queued());
                        assert!(sent.is_ok(), "the waiter has gone");
                        thread::sleep(ASLEEP);
                        let start = Instant::now();
                        drop(holder);
                        total += told.recv().expect("the waiter tells") - start;
                        // Lets a turn that the waiter's own release set off end.
                        gate.held();
                    }
                    drop(hand);
                    total
                })
            });
        });
}
