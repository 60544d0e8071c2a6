//! An event for those who queue outside the gate: capacity may have freed.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::handle::Gate;
use crate::park;
use crate::shared::Shared;
use crate::word::L;

/// Fires once capacity may have freed since it was made, or the gate was stopped.
///
/// Make it, try [`Gate::enter_if_room`], and await it only if that failed:
/// room that frees in between is then never missed. It says *may*: several
/// listeners are woken by the same release, and the gate's own queue goes first.
///
/// ```
/// # let gate = tidegate::Gate::builder().build().unwrap();
/// let permit = loop {
///     let room = gate.room();
///     if let Some(permit) = gate.enter_if_room(None) {
///         break permit;
///     }
///     room.wait();
/// };
/// # drop(permit);
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Room<'g> {
    gate: &'g Gate,
    seen: u64,
}

impl<'g> Room<'g> {
    pub(crate) fn new(gate: &'g Gate) -> Self {
        Room {
            gate,
            seen: gate.shared.listen(),
        }
    }

    /// Parks this thread until the event fires.
    pub fn wait(self) {
        park::block_on(self);
    }

    /// Parks this thread until the event fires (true), or `timeout` is over (false).
    pub fn wait_timeout(self, timeout: Duration) -> bool {
        park::block_on_timeout(pin!(self), timeout).is_some()
    }
}

impl Future for Room<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.gate.shared.poll_room(self.seen, context.waker())
    }
}

impl Shared {
    pub(crate) fn listen(&self) -> u64 {
        let events = self.listeners.events();
        self.budget.set_everywhere(L);
        events
    }

    /// Ready once capacity may have freed since `seen`, or the gate was stopped.
    pub(crate) fn poll_room(&self, seen: u64, waker: &Waker) -> Poll<()> {
        let came = || self.is_stopped() || self.listeners.events() != seen;
        if came() {
            return Poll::Ready(());
        }
        self.listeners.add(waker.clone());
        if came() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
