//! What the tests of the public surface share.
//!
//! Every test judges the gate by its surface alone, and lets the queue's turn
//! end (`settle`) before it looks at counts.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tidegate::{Admission, EngineReport, Gate, Lane, LaneSnapshot, Permit, Settings, Ticket};

/// How long a test waits for what must happen. It never passes by waiting.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Running, waiting, queued.
pub type Held = (u64, u64, u64);

/// All three limits, in the order R, W, Q.
pub fn settings(r: u32, w: u32, q: u32) -> Settings {
    Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    }
}

/// A gate whose engine has not reported: one rank, every request unranked.
pub fn gate(r: u32, w: u32, q: u32) -> Gate {
    watch();
    let limits = settings(r, w, q);
    Gate::builder().settings(limits).build().unwrap()
}

/// A gate whose engine has reported these ranks.
pub fn ranked(r: u32, w: u32, q: u32, ranks: impl IntoIterator<Item = u32>) -> Gate {
    let gate = gate(r, w, q);
    gate.report_engine(report(ranks, None)).unwrap();
    gate
}

/// Ends a run that hangs, as one does when a wake-up is lost.
fn watch() {
    static WATCHDOG: Once = Once::new();
    WATCHDOG.call_once(|| {
        thread::spawn(|| {
            thread::sleep(Duration::from_secs(300));
            eprintln!("a test has not ended after 300 s; was a wake-up lost?");
            std::process::abort();
        });
    });
}

pub fn report(
    ranks: impl IntoIterator<Item = u32>,
    max_num_seqs: impl Into<Option<u32>>,
) -> EngineReport {
    EngineReport {
        ranks: ranks.into_iter().collect(),
        max_num_seqs: max_num_seqs.into(),
    }
}

/// What the worker holds, at rest.
pub fn held(gate: &Gate) -> Held {
    gate.settle();
    let worker = gate.snapshot().worker;
    (worker.running, worker.waiting, worker.queued)
}

/// One lane, at rest.
pub fn lane(gate: &Gate, lane: Lane) -> LaneSnapshot {
    gate.settle();
    let snapshot = gate.snapshot();
    *snapshot.lane(lane).expect("the lane exists")
}

/// What one rank's lane holds, at rest.
pub fn held_by(gate: &Gate, rank: u32) -> Held {
    let seen = lane(gate, Lane::Rank(rank));
    (seen.running, seen.waiting, seen.queued)
}

/// Offers that nobody has taken up, over all lanes, at rest.
pub fn offered(gate: &Gate) -> u64 {
    gate.settle();
    gate.snapshot().total(|lane| lane.offered)
}

/// The request must enter at once.
#[track_caller]
pub fn enter(gate: &Gate, rank: Option<u32>) -> Permit<'_> {
    match gate.request(rank) {
        Ok(Admission::Admitted(permit)) => permit,
        other => panic!("expected to enter, got {other:?}"),
    }
}

/// The request must queue.
#[track_caller]
pub fn queue(gate: &Gate, rank: Option<u32>) -> Ticket<'_> {
    match gate.request(rank) {
        Ok(Admission::Queued(ticket)) => ticket,
        other => panic!("expected to queue, got {other:?}"),
    }
}

/// Polls once, with a waker that does nothing.
pub fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Whether the ticket's turn has come: it then turns into its permit.
#[track_caller]
pub fn take<'g>(gate: &Gate, mut ticket: Ticket<'g>) -> Permit<'g> {
    gate.settle();
    match poll(&mut ticket) {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("expected a permit, got {other:?}"),
    }
}

/// The ticket's turn must not have come.
#[track_caller]
pub fn still_queued(gate: &Gate, ticket: &mut Ticket<'_>) {
    gate.settle();
    assert!(poll(ticket).is_pending(), "its turn came too early");
}

/// All requests are gone: every gauge is 0, every request is accounted for, and
/// a new one gets in.
#[track_caller]
pub fn idle_check(gate: &Gate) {
    gate.settle();
    let snapshot = gate.snapshot();
    for lane in &snapshot.lanes {
        assert_eq!(
            (lane.running, lane.waiting, lane.queued, lane.offered),
            (0, 0, 0, 0),
            "{lane:?} holds something"
        );
        assert!(lane.conserves(), "{lane:?} lost a request");
    }
    assert_eq!(held(gate), (0, 0, 0));
    for lane in &snapshot.lanes {
        let rank = match lane.lane {
            Lane::Rank(id) => Some(id),
            Lane::Unspecified => None,
        };
        drop(gate.try_admit(rank).expect("an idle gate admits"));
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Counts how often it was woken.
#[derive(Default)]
pub struct Wakes(AtomicU64);

impl Wakes {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// How many operations a stress test performs in all: a million, or
/// `TIDEGATE_STRESS_OPS`.
pub fn stress_ops() -> u64 {
    match std::env::var("TIDEGATE_STRESS_OPS") {
        Ok(ops) => ops.parse().expect("TIDEGATE_STRESS_OPS is a number"),
        Err(_) => 1_000_000,
    }
}
