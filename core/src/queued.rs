//! A queued request: it is offered its capacity and takes it, or leaves.

use std::task::{Poll, Waker};

use crate::counters::Event;
use crate::error::Stopped;
use crate::hold::{Hold, Source};
use crate::shared::Shared;
use crate::slots::{Left, Offer, Place};

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
        lane.counters.count(Event::AdmittedQueue);
        if settle {
            lane.queue.settle_offer();
        }
        Some(Hold::new(place.lane, share, Source::Queue))
    }

    pub(crate) fn cancel(&self, place: Place) {
        let lane = self.lane(place.lane);
        let left = self.slots.leave(place);
        lane.counters.count(Event::Cancelled);
        match left {
            Left::Queued => self.leave_queue(place.lane),
            Left::Offered(Offer { share, settle }) => {
                if settle {
                    lane.queue.settle_offer();
                }
                self.give_back(Hold::new(place.lane, share, Source::Queue));
            }
        }
    }

    /// In this order: see `reserve`.
    fn leave_queue(&self, lane: u32) {
        self.lane(lane).queue.leave();
        self.total.leave();
    }
}
