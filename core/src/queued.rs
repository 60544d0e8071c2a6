//! A queued request: it is offered its capacity and takes it, or leaves.

use std::task::{Poll, Waker};

use crate::counters::Event;
use crate::error::Stopped;
use crate::hold::{Hold, Source};
use crate::shared::Shared;
use crate::slots::{Left, Offer, Place};
use crate::sync::Ordering;

impl Shared {
    /// Takes the offer if there is one; else remembers whom to wake.
    pub(crate) fn poll_take(&self, place: Place, waker: &Waker) -> Poll<Result<Hold, Stopped>> {
        if let answer @ Poll::Ready(_) = self.look(place) {
            return answer;
        }
        let (unused, wake) = self.slots.slot(place.slot).waker.register(waker.clone());
        if let Some(unused) = unused {
            if wake { unused.wake() } else { drop(unused) }
        }
        // Only now: an offer made in between found the waker, or is found here.
        self.look(place)
    }

    fn look(&self, place: Place) -> Poll<Result<Hold, Stopped>> {
        if self.is_stopped() {
            return Poll::Ready(Err(Stopped));
        }
        self.take_offer(place)
            .map_or(Poll::Pending, |hold| Poll::Ready(Ok(hold)))
    }

    fn take_offer(&self, place: Place) -> Option<Hold> {
        let Offer { share, settle } = self.slots.take(place)?;
        let lane = self.lane(place.lane);
        // Counted after it is out of the queue's count: see `read_lane`.
        if settle {
            lane.queue.settle_offer();
        }
        lane.counters.count(Event::AdmittedQueue);
        Some(Hold::new(place.lane, share, Source::Queue))
    }

    pub(crate) fn cancel(&self, place: Place) {
        let lane = self.lane(place.lane);
        match self.slots.leave(place) {
            Left::Queued => self.leave_queue(place.lane),
            Left::Offered(Offer { share, settle }) => {
                if settle {
                    lane.queue.settle_offer();
                }
                self.give_back(Hold::new(place.lane, share, Source::Queue));
            }
        }
        lane.counters.count(Event::Cancelled);
    }

    /// Where the request stands in its lane: see [`TicketOf::position`](crate::TicketOf::position).
    pub(crate) fn position(&self, place: Place, due: u64) -> u64 {
        if self.slots.is_offered(place) {
            return 0;
        }
        let lane = self.lane(place.lane);
        // Relaxed: an estimate.
        let turns = lane.turns.load(Ordering::Relaxed);
        let queued = lane.queue.read().queued.max(1);
        due.saturating_sub(turns).clamp(1, queued)
    }

    /// The request goes back to where it came from, uncounted: true unless it was
    /// offered capacity, which is then still to be taken.
    pub(crate) fn withdraw(&self, place: Place) -> bool {
        let withdrawn = self.slots.leave_waiting(place);
        if withdrawn {
            self.leave_queue(place.lane);
        }
        withdrawn
    }

    /// In this order: see `reserve`.
    fn leave_queue(&self, lane: u32) {
        self.lane(lane).queue.leave();
        self.total.leave();
    }
}
