//! Entering where the flags shut newcomers out.
//!
//! Flags are the turn's to clear, and a turn may stand still. So a newcomer that
//! meets them looks at what they stand for. It passes over nobody if nobody
//! has queued in its own lane and the worker has room for everyone queued who could
//! use it, and for itself: then it enters. Otherwise, where there is room all the
//! same, a turn is overdue, and the newcomer rings for it.
//!
//! At rest there is no such room, and all this only reads.

use crate::budget::Lack;
use crate::hold::Hold;
use crate::reached::Reached;
use crate::shared::Shared;
use crate::word::Kind;
use crate::word::step::Who;

const KINDS: [Kind; 2] = [Kind::Running, Kind::Waiting];

/// How often a sum that something moved under is read again.
const ROUNDS: usize = 8;

impl Shared {
    /// For a newcomer that the flags shut out: enters, or says which limit keeps
    /// out it, or those whom it must stay behind.
    #[cold]
    pub(crate) fn enter_shut(&self, lane: u32) -> Result<Hold, Reached> {
        if self.is_stopped() {
            // Whatever it is: who was stopped is told so, and no limit.
            return Err(Reached::by_worker(Kind::Running));
        }
        if let Some(reached) = self.reached(lane) {
            return Err(reached);
        }
        if self.ahead(lane).is_none() {
            return self.enter_looking(lane);
        }
        self.ring();
        match self.enter_as(lane, Who::Newcomer, |flags| self.after_give_back(flags)) {
            Ok(hold) => Ok(hold),
            Err(Lack::Of(reached)) => Err(reached),
            // The turn may have run meanwhile, on this thread or another.
            Err(Lack::Shut) => match self.ahead(lane) {
                None => self.enter_looking(lane),
                Some(reached) => Err(reached),
            },
        }
    }

    /// The limit that leaves no room just now, flags aside.
    fn reached(&self, lane: u32) -> Option<Reached> {
        let own = lane
            .checked_sub(1)
            .and_then(|home| self.budget.share(home as usize).load().own_lack());
        own.map(Reached::by_rank)
            .or_else(|| self.budget.full().map(Reached::by_worker))
    }

    /// What those lack whom a newcomer of this lane would pass over.
    ///
    /// Of the lane's own queue: what its oldest lacked when it came, or when the
    /// last turn looked. Whoever has freed some of that since is not done before
    /// the turn that it rang for has ended. Those who are still arriving came no
    /// earlier than this one.
    fn ahead(&self, lane: u32) -> Option<Reached> {
        let queue = self.lane(lane).queue.read();
        let own = queue.lacked.filter(|_| queue.queued > 0);
        own.or_else(|| self.scarce(1).map(Reached::by_worker))
    }

    /// Enters although there are flags, and looks once more with the tokens in
    /// hand, against others who do the same.
    pub(crate) fn enter_looking(&self, lane: u32) -> Result<Hold, Reached> {
        let hold = self
            .enter_as(lane, Who::Entitled, |flags| self.after_give_back(flags))
            .map_err(|lack| match lack {
                Lack::Of(reached) => reached,
                Lack::Shut => unreachable!("flags shut nobody out who is entitled"),
            })?;
        // ENTRY: of two who entered, one comes second here, and sees the other's entry.
        self.total.mark();
        match self.scarce(0) {
            None => Ok(hold),
            Some(kind) => {
                self.give_back(hold);
                Err(Reached::by_worker(kind))
            }
        }
    }

    /// Of which kind the worker's room is least, if it is not enough for everyone
    /// queued who could use it, and so many more. Used and queued together are
    /// then as many as the limit.
    fn scarce(&self, more: i64) -> Option<Kind> {
        let (queued, _) = self.total.read();
        let owes = KINDS.map(|kind| self.budget.debt(kind)) != [0, 0];
        let wanted = match queued {
            0 if owes => more,
            // What is there, the entry itself finds out.
            0 => return None,
            _ => self.demand() + more,
        };
        let room = KINDS.map(|kind| (self.steady_room(kind), kind));
        let (least, kind) = room.into_iter().min_by_key(|(room, _)| *room)?;
        (least < wanted).then_some(kind)
    }

    /// How many queued requests lack nothing but the worker's capacity, at most.
    fn demand(&self) -> i64 {
        let queued = |lane| self.lane(lane).queue.read().queued as i64;
        let of_rank = |lane| match queued(lane) {
            0 => 0,
            queued => {
                let word = self.budget.share(lane as usize - 1).load();
                let own = KINDS.map(|kind| i64::from(word.own(kind)).max(0));
                own.into_iter().fold(queued, i64::min)
            }
        };
        queued(0) + (1..self.lanes()).map(of_rank).sum::<i64>()
    }

    /// The worker's room when two readings agree, or after some rounds the last.
    fn steady_room(&self, kind: Kind) -> i64 {
        let mut last = self.budget.room(kind);
        for _ in 0..ROUNDS {
            let again = self.budget.room(kind);
            let steady = again == last;
            last = again;
            if steady {
                break;
            }
        }
        last
    }
}
