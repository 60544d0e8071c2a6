//! A request arrives: it enters, queues, or is refused.

use crate::budget::{Flags, Lack};
use crate::counters::Event;
use crate::error::Rejection;
use crate::hold::{Hold, Source};
use crate::reached::Reached;
use crate::shared::Shared;
use crate::slots::Place;
use crate::word::step::Who;

/// What becomes of a request that is not refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    Admitted(Hold),
    /// With how many turns the lane will have had with this request's, if nobody
    /// leaves. Not part of the place, which stays small enough for registers.
    Queued(Place, u64),
}

impl Shared {
    /// Enters in one step, if one word decides that: its rank's, or for a request of
    /// no rank the one where this thread looks first. Nothing else is on this path.
    #[inline]
    pub(crate) fn enter_at_once(&self, rank: Option<u32>) -> Option<Hold> {
        let Some((home, state)) = self.ranked_lane(rank) else {
            return self.enter_unranked_at_once();
        };
        let counter = state.counters.mine(Event::AdmittedDirect);
        self.budget.share(home as usize).enter(Who::Newcomer).ok()?;
        counter.count();
        Some(Hold::new(home + 1, home, Source::Direct))
    }

    #[inline(never)]
    fn enter_unranked_at_once(&self) -> Option<Hold> {
        let counter = self.unspecified.counters.mine(Event::AdmittedDirect);
        let hint = self.budget.hint();
        let share = self.budget.share(hint as usize);
        share.enter_shared(Who::Newcomer).ok()?;
        counter.count();
        Some(Hold::new(0, hint, Source::Direct))
    }

    /// For a request that did not enter at once: enters now, or says in which lane
    /// and which limit keeps it out.
    #[cold]
    pub(crate) fn enter_now(&self, rank: Option<u32>) -> Result<Hold, (u32, Reached)> {
        let lane = self.lane_index(rank);
        let hold = self.enter(lane).map_err(|reached| (lane, reached))?;
        self.lane(lane).counters.count(Event::AdmittedDirect);
        Ok(hold)
    }

    /// Enters, or counts as refused.
    #[cold]
    pub(crate) fn enter_or_refuse(&self, rank: Option<u32>) -> Result<Hold, Rejection> {
        self.enter_now(rank)
            .map_err(|(lane, reached)| self.refuse_entry(lane, reached))
    }

    pub(crate) fn enter_if_room(&self, rank: Option<u32>) -> Option<Hold> {
        self.enter_at_once(rank)
            .or_else(|| self.enter_now(rank).ok())
    }

    pub(crate) fn request(&self, rank: Option<u32>) -> Result<Arrival, Rejection> {
        if let Some(hold) = self.enter_at_once(rank) {
            return Ok(Arrival::Admitted(hold));
        }
        match self.enter_now(rank) {
            Ok(hold) => Ok(Arrival::Admitted(hold)),
            Err((lane, reached)) => self.queue_up(lane, reached),
        }
    }

    pub(crate) fn cancelled_on_arrival(&self, rank: Option<u32>) {
        self.lane(self.lane_index(rank))
            .counters
            .count(Event::Cancelled);
    }

    /// Enters, if that passes over nobody.
    pub(crate) fn enter(&self, lane: u32) -> Result<Hold, Reached> {
        match self.enter_as(lane, Who::Newcomer, |flags| self.after_give_back(flags)) {
            Ok(hold) => Ok(hold),
            Err(Lack::Of(reached)) => Err(reached),
            Err(Lack::Shut) => self.enter_shut(lane),
        }
    }

    /// Enters, for a newcomer or on behalf of a queued request. `told` hears the
    /// flags of what it had to put back on the way.
    pub(crate) fn enter_as(
        &self,
        lane: u32,
        who: Who,
        mut told: impl FnMut(Flags),
    ) -> Result<Hold, Lack> {
        let share = match lane.checked_sub(1) {
            Some(home) => {
                self.budget.enter_ranked(home as usize, who, &mut told)?;
                home
            }
            None => {
                let hint = self.budget.hint() as usize;
                self.budget.enter_unranked(hint, who, &mut told)? as u32
            }
        };
        Ok(Hold::new(lane, share, Source::Direct))
    }
}
