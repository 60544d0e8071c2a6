//! The sequential gate behind one lock, with direct hand-off: whoever frees
//! capacity offers it to the oldest waiters before letting go of the lock, and
//! wakes them after.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use crate::error::{Lane, LimitError, Overload, Rejection, ReportError, Stopped};
use crate::limits::{EngineReport, Limits, Settings};
use crate::snapshot::Snapshot;
use crate::spec::{Answer, LaneIndex, Number, SpecGate};
use crate::sync::{Mutex, MutexGuard};

/// What the handles of one gate share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    spec: SpecGate,
    stopped: bool,
    /// Whom to wake when a queued request is offered its capacity.
    sleepers: HashMap<Number, Waker>,
    /// How often capacity may have freed, and whom to wake the next time.
    room_events: u64,
    room_listeners: Vec<Waker>,
}

/// A queued request's place, given to its ticket.
pub(crate) type Place = Number;

impl Shared {
    pub(crate) fn new(settings: Settings) -> Result<Self, LimitError> {
        Ok(Shared {
            state: Mutex::new(State {
                spec: SpecGate::new(settings)?,
                stopped: false,
                sleepers: HashMap::new(),
                room_events: 0,
                room_listeners: Vec::new(),
            }),
        })
    }

    pub(crate) fn try_admit(&self, rank: Option<u32>) -> Result<LaneIndex, Rejection> {
        self.unless_stopped(|spec| spec.try_admit(rank))
    }

    pub(crate) fn enter_if_room(&self, rank: Option<u32>) -> Option<LaneIndex> {
        let mut state = self.lock();
        if state.stopped {
            None
        } else {
            state.spec.enter_if_room(rank)
        }
    }

    pub(crate) fn request(&self, rank: Option<u32>) -> Result<Answer, Rejection> {
        self.unless_stopped(|spec| spec.request(rank))
    }

    pub(crate) fn cancelled_on_arrival(&self, rank: Option<u32>) {
        self.lock().spec.cancelled_on_arrival(rank);
    }

    /// Takes the offer if there is one; else remembers whom to wake.
    pub(crate) fn poll_take(&self, place: Place, waker: &Waker) -> Poll<Result<(), Stopped>> {
        // Foreign code: cloned and dropped outside the lock.
        let waker = waker.clone();
        let mut state = self.lock();
        // First, since capacity that frees after the stop is offered all the same.
        if state.stopped {
            return Poll::Ready(Err(Stopped));
        }
        if state.spec.take(place) {
            return Poll::Ready(Ok(()));
        }
        let replaced = state.sleepers.insert(place, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    pub(crate) fn cancel(&self, place: Place) {
        let mut state = self.lock();
        let sleeper = state.sleepers.remove(&place);
        state.spec.cancel(place);
        self.freed(state);
        drop(sleeper);
    }

    pub(crate) fn first_token(&self, lane: LaneIndex) {
        let mut state = self.lock();
        state.spec.first_token(lane);
        self.freed(state);
    }

    pub(crate) fn release(&self, lane: LaneIndex, waiting: bool) {
        let mut state = self.lock();
        state.spec.release(lane, waiting);
        self.freed(state);
    }

    pub(crate) fn report_engine(&self, report: &EngineReport) -> Result<Limits, ReportError> {
        let mut state = self.lock();
        let limits = state.spec.report_engine(report);
        self.freed(state);
        limits
    }

    pub(crate) fn set_limits(&self, settings: Settings) -> Result<Limits, LimitError> {
        let mut state = self.lock();
        let limits = state.spec.set_limits(settings);
        self.freed(state);
        limits
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().spec.snapshot()
    }

    pub(crate) fn lane_at(&self, lane: LaneIndex) -> Lane {
        self.lock().spec.lane_at(lane)
    }

    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let mut wakers: Vec<_> = state.sleepers.drain().map(|(_, waker)| waker).collect();
        wakers.append(&mut state.room_listeners);
        drop(state);
        wake(wakers);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    pub(crate) fn room_events(&self) -> u64 {
        self.lock().room_events
    }

    /// Ready once capacity may have freed since `seen` events, or the gate was stopped.
    pub(crate) fn poll_room(&self, seen: u64, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        let mut state = self.lock();
        if state.stopped || state.room_events != seen {
            return Poll::Ready(());
        }
        let known = state
            .room_listeners
            .iter()
            .any(|listener| listener.will_wake(&waker));
        let unused = if known {
            Some(waker)
        } else {
            state.room_listeners.push(waker);
            None
        };
        drop(state);
        drop(unused);
        Poll::Pending
    }

    fn unless_stopped<T>(
        &self,
        arrive: impl FnOnce(&mut SpecGate) -> Result<T, Overload>,
    ) -> Result<T, Rejection> {
        let mut state = self.lock();
        if state.stopped {
            return Err(Rejection::Stopped);
        }
        arrive(&mut state.spec).map_err(Rejection::Overloaded)
    }

    /// After any change that may have freed capacity: lets go of the lock, then
    /// wakes those who were offered something and those who listen for room.
    fn freed(&self, mut state: MutexGuard<'_, State>) {
        let state_mut = &mut *state;
        state_mut.room_events += 1;
        let mut wakers = std::mem::take(&mut state_mut.room_listeners);
        let offers = state_mut.spec.take_offers();
        wakers.extend(
            offers
                .iter()
                .filter_map(|place| state_mut.sleepers.remove(place)),
        );
        drop(state);
        wake(wakers);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so a poisoned one is still whole.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Wakes each; a waker that panics keeps no other from being woken.
fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}
