//! A request gives back what it holds, and whoever waits for that is told.

use crate::budget::Flags;
use crate::hold::Hold;
use crate::share::Share;
use crate::shared::Shared;
use crate::word::{Delta, I, Kind, L, N};

impl Shared {
    /// The first token came.
    #[inline]
    pub(crate) fn first_token(&self, hold: Hold) {
        let flags = if hold.lane() == 0 {
            self.first_token_unranked(hold)
        } else {
            self.share_of(hold).add(Delta::ranked(Kind::Waiting))
        };
        self.after_give_back(flags);
    }

    #[inline(never)]
    fn first_token_unranked(&self, hold: Hold) -> Flags {
        self.put_one(hold, Kind::Waiting)
    }

    #[inline]
    pub(crate) fn give_back(&self, hold: Hold) {
        self.after_give_back(self.put_back(hold));
    }

    /// Gives back without telling anybody; the flags say whom.
    #[inline]
    pub(crate) fn put_back(&self, hold: Hold) -> Flags {
        const RUNNING: Delta = Delta::ranked(Kind::Running);
        const BOTH: Delta = RUNNING.and(Delta::ranked(Kind::Waiting));
        if hold.lane() == 0 {
            return self.put_back_unranked(hold);
        }
        let delta = if hold.is_waiting() { BOTH } else { RUNNING };
        self.share_of(hold).add(delta)
    }

    /// The waiting token first, so that nobody waits who does not run.
    #[inline(never)]
    fn put_back_unranked(&self, hold: Hold) -> Flags {
        if hold.is_waiting() {
            let waiting = self.put_one(hold, Kind::Waiting);
            waiting.with_flags_of(self.put_one(hold, Kind::Running))
        } else {
            self.put_one(hold, Kind::Running)
        }
    }

    /// An unranked request's token: where it came from, if a lane could use it there.
    #[inline]
    fn put_one(&self, hold: Hold, kind: Kind) -> Flags {
        match self.share_of(hold).put(kind) {
            Ok(flags) => flags,
            Err(_) => self.budget.put(kind, hold.share() as usize),
        }
    }

    #[inline]
    fn share_of(&self, hold: Hold) -> &Share {
        self.budget.share(hold.share() as usize)
    }

    /// Capacity was given back into a word with these flags.
    #[inline]
    pub(crate) fn after_give_back(&self, flags: Flags) {
        if flags.has(N | I | L) {
            self.tell(flags);
        }
    }

    #[cold]
    fn tell(&self, flags: Flags) {
        if flags.has(N | I) {
            self.ring();
        }
        if flags.has(L) {
            self.fire_room();
        }
    }

    pub(crate) fn fire_room(&self) {
        // Cleared before the event: who listens anew after that sets it again.
        self.budget.clear_everywhere(L);
        self.listeners.fire();
    }
}
