//! Where queued requests wait: slots that are reused at once when somebody
//! leaves, so that nothing piles up behind a blocked head.
//!
//! ```text
//!            occupy               offer (turn)              take
//!   DONE ────────────▶ WAITING ────────────────▶ OFFERED ────────────▶ DONE
//!     ▲                   │ cancel                  │ cancel
//!     └───────────────────┴─────────────────────────┘
//! ```
//!
//! `offer` also sets TURN until the turn has counted the offer and fetched the
//! waker. Of the turn and the ticket, whoever lets go of the slot last frees it
//! and settles the count.

use std::task::Waker;

use crate::chunks::{Slot, Slots};
use crate::state::{AGE_MASK, DONE, OFFERED, STATUS, State, TURN, WAITING};
use crate::sync::Ordering;

/// A queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) age: u64,
    pub(crate) lane: u32,
}

/// How a request left its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Still waiting: it held a place in the queue.
    Queued,
    /// It had been offered capacity.
    Offered(Offer),
}

/// Capacity that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Where the capacity is.
    pub(crate) share: u32,
    /// Whether the ticket let go of the slot last, and settles the count.
    pub(crate) settle: bool,
}

impl Slots {
    /// Fills a slot with a request, and marks it for the turn.
    pub(crate) fn occupy(&self, slot: u32, lane: u32) -> Place {
        // AGE, Release: whoever sees that this age was given out sees the marks
        // of those who queued before this one came. Requests that do not overlap
        // get ages in order through whatever ordered them.
        let age = self.next_age.fetch_add(1, Ordering::Release) & AGE_MASK;
        let (chunk, at) = self.locate(slot);
        let waiting = State::waiting(age, lane);
        // ARRIVE, Release: a request that is seen here is counted in its queue.
        chunk.slots[at].state.store(waiting.0, Ordering::Release);
        chunk.mark(at);
        Place { slot, age, lane }
    }

    /// Who comes from now on is at least this old.
    pub(crate) fn next_age(&self) -> u64 {
        // AGE, Acquire: the marks of all who were queued before one of those that
        // have an age below this came.
        self.next_age.load(Ordering::Acquire) & AGE_MASK
    }

    /// The state of a slot where a request of this age waits.
    fn waiting(&self, slot: u32, age: u64) -> Option<State> {
        // LET-GO, Acquire: whoever left before this is done leaving.
        let state = State(self.slot(slot).state.load(Ordering::Acquire));
        (state.is(WAITING) && state.age() == age).then_some(state)
    }

    pub(crate) fn is_waiting(&self, slot: u32, age: u64) -> bool {
        self.waiting(slot, age).is_some()
    }

    /// Offers capacity at `share`; false if the request has left. The turn's alone.
    pub(crate) fn offer(&self, slot: u32, age: u64, share: u32) -> bool {
        let Some(State(waiting)) = self.waiting(slot, age) else {
            return false;
        };
        let State(offered) = State::offered(age, share);
        // OFFER, Release: the ticket that sees the offer sees what the last holder of
        // the capacity did. Acquire: who cancelled before is done with the slot.
        self.slot(slot)
            .state
            .compare_exchange(waiting, offered, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The turn has counted an offer and fetched the waker. True if the ticket let
    /// go before: then the turn settles the count.
    pub(crate) fn let_go(&self, slot: u32) -> bool {
        // LET-GO, AcqRel: of the two that let go, the second frees the slot, after
        // everything that the first did there.
        let old = self.slot(slot).state.fetch_and(!TURN, Ordering::AcqRel);
        let last = State(old).is(DONE);
        if last {
            self.release(slot);
        }
        last
    }

    /// Takes the offer up, if there is one.
    pub(crate) fn take(&self, place: Place) -> Option<Offer> {
        let here = self.slot(place.slot);
        // OFFER, Acquire: then the capacity is ours.
        let state = State(here.state.load(Ordering::Acquire));
        debug_assert_eq!(state.age(), place.age, "a ticket leaves its slot once");
        state.is(OFFERED).then(|| match self.leave(place) {
            Left::Offered(offer) => offer,
            Left::Queued => unreachable!("an offer stands until its ticket answers it"),
        })
    }

    /// Leaves the slot, if nothing was offered yet.
    pub(crate) fn leave_waiting(&self, place: Place) -> bool {
        let State(waiting) = State::waiting(place.age, place.lane);
        // LET-GO, AcqRel: as in `leave`.
        let left = self.slot(place.slot).state.compare_exchange(
            waiting,
            waiting & !STATUS | DONE,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if left.is_ok() {
            self.release(place.slot);
        }
        left.is_ok()
    }

    /// Leaves the slot, whatever its state.
    pub(crate) fn leave(&self, place: Place) -> Left {
        let here = self.slot(place.slot);
        // Foreign code: dropped before anything is let go of.
        drop(here.waker.take());
        // OFFER, Acquire: as in `take`.
        let mut state = here.state.load(Ordering::Acquire);
        loop {
            let left = State(state);
            debug_assert_eq!(left.age(), place.age, "a ticket leaves its slot once");
            // LET-GO, AcqRel: as in `let_go`. One of offer and cancel comes second
            // and sees the first.
            match here.state.compare_exchange_weak(
                state,
                state & !STATUS | DONE,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let settle = state & TURN == 0;
                    if settle {
                        self.release(place.slot);
                    }
                    let share = left.place();
                    return if left.is(OFFERED) {
                        Left::Offered(Offer { share, settle })
                    } else {
                        Left::Queued
                    };
                }
                Err(now) => state = now,
            }
        }
    }

    /// All wakers that wait in any slot.
    pub(crate) fn take_wakers(&self) -> impl Iterator<Item = Waker> {
        self.published()
            .flat_map(|(_, chunk)| chunk.slots.iter())
            .filter_map(|slot| slot.waker.take())
    }

    /// Whether the request has been offered capacity, which it has not answered.
    pub(crate) fn is_offered(&self, place: Place) -> bool {
        // Relaxed: nothing is read through it; it may be so no longer.
        let state = self.slot(place.slot).state.load(Ordering::Relaxed);
        state & STATUS == OFFERED
    }

    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        let (chunk, at) = self.locate(slot);
        &chunk.slots[at]
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::chunks::FIRST;

    #[test]
    fn no_slot_is_allocated_while_one_is_free() {
        let slots = Slots::new();
        let first: Vec<u32> = (0..FIRST).map(|_| slots.acquire()).collect();
        first.iter().for_each(|slot| slots.release(*slot));
        for _ in 0..3 * FIRST {
            slots.release(slots.acquire());
        }
        assert_eq!(slots.published().count(), 1);
    }

    #[test]
    fn a_left_slot_is_free_at_once_and_ages_tell_stale_references() {
        let slots = Slots::new();
        let first = slots.occupy(slots.acquire(), 3);
        assert_eq!(slots.leave(first), Left::Queued);
        let second = slots.occupy(slots.acquire(), 4);
        assert_eq!(second.slot, first.slot);
        assert!(!slots.offer(first.slot, first.age, 0));
        let mut seen = Vec::new();
        slots.drain_fresh(|slot, age, lane| seen.push((slot, age, lane)));
        assert_eq!(seen, [(second.slot, second.age, 4)]);
        assert!(!slots.any_fresh());
    }

    #[test]
    fn the_last_to_let_go_frees_the_slot() {
        let slots = Slots::new();
        let place = slots.occupy(slots.acquire(), 0);
        assert!(slots.offer(place.slot, place.age, 7));
        assert_eq!(
            slots.take(place),
            Some(Offer {
                share: 7,
                settle: false
            })
        );
        assert_ne!(slots.acquire(), place.slot, "the turn still looks at it");
        assert!(slots.let_go(place.slot));
        assert_eq!(slots.acquire(), place.slot);
    }
}
