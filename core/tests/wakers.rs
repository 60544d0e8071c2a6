//! Wakers are other people's code: they may call the gate, and they may panic.

mod common;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use common::*;
use tidegate::Gate;

fn poll_with<F: Future + Unpin>(future: &mut F, waker: impl Wake + Send + Sync + 'static) {
    let waker = Waker::from(Arc::new(waker));
    let poll = Pin::new(future).poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
}

/// Reads, enters, queues and leaves, all inside the wake-up and its drop.
struct Busy {
    gate: Gate,
    woken: Arc<AtomicU64>,
}

impl Busy {
    fn bother(&self) {
        let _ = self.gate.snapshot();
        drop(self.gate.try_admit(None));
        drop(self.gate.request(None));
        drop(self.gate.enter_if_room(None));
    }
}

impl Wake for Busy {
    fn wake(self: Arc<Self>) {
        self.bother();
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.bother();
    }
}

#[test]
fn a_waker_may_call_the_gate() {
    let gate = gate(1, 1, 4);
    let woken = Arc::new(AtomicU64::new(0));
    let busy = || Busy {
        gate: gate.clone(),
        woken: Arc::clone(&woken),
    };
    let holder = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    poll_with(&mut ticket, busy());
    // Registering anew drops the waker of before.
    poll_with(&mut ticket, busy());
    gate.settle();
    let mut room = gate.room();
    poll_with(&mut room, busy());
    drop(holder);
    eventually("both are woken", || woken.load(Ordering::SeqCst) == 2);
    drop(take(&gate, ticket));
    idle_check(&gate);
}

#[test]
fn a_waker_that_calls_the_gate_may_be_dropped_by_leaving() {
    let gate = gate(1, 1, 4);
    let woken = Arc::new(AtomicU64::new(0));
    let holder = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    let waker = Busy {
        gate: gate.clone(),
        woken: Arc::clone(&woken),
    };
    poll_with(&mut ticket, waker);
    ticket.cancel();
    assert_eq!(held(&gate), (1, 1, 0));
    assert_eq!(woken.load(Ordering::SeqCst), 0, "who left is not woken");
    drop(holder);
    idle_check(&gate);
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        // Unlike `panic!`, without a message on standard error.
        std::panic::resume_unwind(Box::new("a waker failed"));
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    let gate = gate(2, 2, 2);
    let holders = (enter(&gate, None), enter(&gate, None));
    let mut first = queue(&gate, None);
    let mut second = queue(&gate, None);
    let mut room = gate.room();
    poll_with(&mut first, Panicking);
    poll_with(&mut room, Panicking);
    let wakes = Wakes::new();
    assert!(wakes.poll(&mut second).is_pending());
    // Neither release panics.
    drop(holders.0);
    drop(holders.1);
    eventually("the other one is woken", || wakes.count() >= 1);
    drop((take(&gate, first), take(&gate, second)));
    idle_check(&gate);
}

#[test]
fn a_waker_that_panics_does_not_break_stopping() {
    let gate = gate(1, 1, 2);
    let holder = enter(&gate, None);
    let mut first = queue(&gate, None);
    let mut second = queue(&gate, None);
    poll_with(&mut first, Panicking);
    let wakes = Wakes::new();
    assert!(wakes.poll(&mut second).is_pending());
    gate.stop();
    eventually("the other one is woken", || wakes.count() >= 1);
    assert!(first.wait().is_err() && second.wait().is_err());
    drop(holder);
}
