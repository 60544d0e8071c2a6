//! What a desk does that stands before many engines instead of one gate: it can be
//! told whether there is room, and who went in may come back.

use std::time::Duration;

use super::queues::Held;
use super::{Desk, Entry, Moves, Place, alone};
use crate::class::ClassId;
use crate::decision::Decision;
use crate::judge::Inside;
use crate::profile::Profile;
use crate::reason::Reason;

impl<T> Desk<T> {
    /// As [`arrives`](Desk::arrives) in [`Mode::Observe`](crate::shadow::Mode::Observe),
    /// before a gate that can be looked at without entering: `room` is whether there is
    /// any. It is always left to the gate.
    pub fn watches<P>(
        &mut self,
        now: Duration,
        profile: Profile,
        who: T,
        room: bool,
        moves: &mut Moves<T, P>,
    ) {
        let class = profile.class;
        let decision = match self.first_decision(now, &profile, 0) {
            Decision::Admit if !room => Decision::Wait(Reason::ConcurrencyLimit),
            decision => decision,
        };
        let decision = self.limited(class, 0, decision);
        self.tally.count(class, decision);
        let held = Held {
            who,
            profile,
            arrived: now,
            concurrency: self.judge.concurrency(0),
            paid: false,
        };
        moves.push(alone(held, None));
    }

    /// A request that was let in was turned away behind the gate. It is held again, in
    /// its old place in `class` and with the rest of its time, if the class holds any. It
    /// is not charged for again.
    /// What becomes of it is among the moves, unless it is held: then this is its place.
    pub fn returns<P>(
        &mut self,
        now: Duration,
        inside: Inside,
        class: ClassId,
        who: T,
        gate: &mut impl FnMut(&T) -> Entry<P>,
        moves: &mut Moves<T, P>,
    ) -> Option<Place> {
        let (mut profile, arrived) = self.judge.turned_away(inside);
        // It may have another number since a reload.
        profile.class = class;
        self.tally.returned(class);
        let holds_none = self.holds_none(class);
        let place = self.queues.put_back(Held {
            who,
            profile,
            arrived,
            concurrency: self.judge.concurrency(0),
            paid: true,
        });
        self.mark(class);
        if holds_none {
            self.refuse(now, place, Reason::ConcurrencyLimit, moves);
        }
        self.settle(now, gate, moves);
        self.queues.get(place).map(|_| place)
    }
}
