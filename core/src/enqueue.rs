//! A request that cannot enter queues, or is refused.

use crate::arrive::Arrival;
use crate::counters::Event;
use crate::error::Rejection;
use crate::reached::Reached;
use crate::shared::Shared;
use crate::slots::Place;
use crate::sync::Ordering;

/// Which queue leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Own,
    Worker,
}

impl Shared {
    /// The request lacks what was `reached`.
    #[cold]
    pub(crate) fn queue_up(&self, lane: u32, reached: Reached) -> Result<Arrival, Rejection> {
        let (place, due) = match self.enqueue(lane, reached)? {
            (place, due, Some(lacked)) => return Ok(self.stay(place, due, lacked)),
            (place, due, None) => (place, due),
        };
        // It has come meanwhile, from somebody who saw no flag and is gone. If no turn
        // has offered it, the request tries once more: else those who come after it
        // would be told that they lack what nobody has reached.
        self.ring();
        if !self.withdraw(place) {
            return Ok(Arrival::Queued(place, due));
        }
        match self.enter(lane) {
            Ok(hold) => {
                self.lane(lane).counters.count(Event::AdmittedDirect);
                Ok(Arrival::Admitted(hold))
            }
            Err(reached) => {
                let (place, due, lacked) = self.enqueue(lane, reached)?;
                if lacked.is_none() {
                    self.ring();
                }
                Ok(self.stay(place, due, lacked.unwrap_or(reached)))
            }
        }
    }

    /// Takes a place in the queue, and makes sure that whoever frees what the request
    /// lacks knows of it: what that is, or nothing if it lies free. Between the two is when
    /// the request's turn is due.
    fn enqueue(
        &self,
        lane: u32,
        reached: Reached,
    ) -> Result<(Place, u64, Option<Reached>), Rejection> {
        if self.is_stopped() {
            return Err(Rejection::Stopped);
        }
        // A look first: a refusal writes nothing that others write.
        self.queue_room(lane)
            .map_err(|full| self.refuse_queue(lane, reached, full))?;
        // The slot before the reservation: it may have to be allocated.
        let slot = self.slots.acquire();
        let due = match self.reserve(lane) {
            Ok(due) => due,
            Err(full) => {
                self.slots.release(slot);
                return Err(self.refuse_queue(lane, reached, full));
            }
        };
        let place = self.slots.occupy(slot, lane);
        let home = lane.checked_sub(1).map(|home| home as usize);
        let lacked = self.budget.announce(home);
        if self.is_stopped() {
            self.ring();
        }
        Ok((place, due, lacked))
    }

    fn stay(&self, place: Place, due: u64, lacked: Reached) -> Arrival {
        self.lane(place.lane).queue.say_lacked(lacked);
        Arrival::Queued(place, due)
    }

    /// Which queue is full for this lane, if one is: its own first.
    fn queue_room(&self, lane: u32) -> Result<(), Full> {
        let own = self.lane(lane).queue.read();
        if lane != 0 && own.queued >= own.limit {
            return Err(Full::Own);
        }
        let (queued, limit) = self.total.read();
        if queued >= limit {
            Err(Full::Worker)
        } else {
            Ok(())
        }
    }

    /// Takes a place in both queues: how many turns the lane will have had with this
    /// request's.
    fn reserve(&self, lane: u32) -> Result<u64, Full> {
        let state = self.lane(lane);
        let own = &state.queue;
        let position = own.reserve(lane != 0).ok_or(Full::Own)?;
        // Relaxed: an estimate. A turn since the reservation makes it one too many.
        let due = state.turns.load(Ordering::Relaxed) + position;
        if !self.total.reserve() {
            own.leave();
            return Err(Full::Worker);
        }
        // Leaving takes the lane's count down first: whoever got a leaver's place in
        // the worker's queue finds its lane without it.
        own.unsay_if_alone();
        Ok(due)
    }
}
