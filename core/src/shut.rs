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
        if self.is_stopped() {
            return Err(Lack::Turn);
        }
        if let Some(lack) = self.lacks(lane) {
            return Err(lack);
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

    /// What there is no room for just now, flags aside: the limit that a refusal
    /// may name, since it was reached within this call.
    fn lacks(&self, lane: u32) -> Option<Lack> {
        let kinds = [Kind::Running, Kind::Waiting];
        let own = lane.checked_sub(1).and_then(|home| {
            let word = self.budget.share(home as usize).load();
            kinds.into_iter().find(|kind| word.own(*kind) <= 0)
        });
        let worker = || kinds.into_iter().find(|kind| self.budget.none_free(*kind));
        own.map(Lack::Own).or_else(|| worker().map(Lack::Worker))
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
