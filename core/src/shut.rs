//! Entering where the flags shut newcomers out.
//!
//! Flags are the turn's to clear, and a turn may stand still. So a newcomer that
//! meets them looks at what they stand for. It passes over nobody if its own
//! lane's queue is empty and the worker's free tokens are enough for everyone
//! who is queued and for itself: then it enters. Otherwise, where there is room
//! all the same, a turn is overdue, and the newcomer rings for it.
//!
//! At rest there is no such room, and all this only reads.

use crate::budget::Lack;
use crate::hold::Hold;
use crate::shared::Shared;
use crate::word::Kind;
use crate::word::step::Who;

impl Shared {
    /// For a newcomer that the flags shut out.
    #[cold]
    pub(crate) fn enter_shut(&self, lane: u32) -> Result<Hold, Lack> {
        if self.is_stopped() || !self.has_room(lane) {
            return Err(Lack::Turn);
        }
        if self.lane(lane).queue.read().queued == 0 && self.leaves_enough(1) {
            let hold = self.enter_as(lane, Who::Known, |flags| self.after_give_back(flags))?;
            // Once more with the tokens in hand, against others who do the same.
            if self.leaves_enough(0) {
                return Ok(hold);
            }
            self.give_back(hold);
            return Err(Lack::Turn);
        }
        self.ring();
        self.enter_as(lane, Who::Newcomer, |flags| self.after_give_back(flags))
    }

    fn has_room(&self, lane: u32) -> bool {
        let own_room = match lane.checked_sub(1) {
            Some(home) => self.budget.share(home as usize).load().own_room(),
            None => true,
        };
        own_room && self.budget.both_free()
    }

    /// Whether the free tokens are enough for everyone who is queued, and so
    /// many more.
    fn leaves_enough(&self, more: i64) -> bool {
        let (queued, _) = self.total.read();
        queued == 0
            || self
                .free_tokens()
                .is_some_and(|free| free >= queued as i64 + more)
    }

    /// The free tokens of whichever kind has fewer, if two readings agree.
    fn free_tokens(&self) -> Option<i64> {
        let read = || {
            let free = |kind| self.budget.free(kind);
            (free(Kind::Running), free(Kind::Waiting))
        };
        let (running, waiting) = read();
        (read() == (running, waiting)).then_some(running.min(waiting))
    }
}
