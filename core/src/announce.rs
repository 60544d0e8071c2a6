//! Flags over all shares: telling whoever frees capacity that somebody waits.

use crate::budget::Budget;
use crate::reached::Reached;
use crate::sync::{Ordering, fence};
use crate::word::{I, Kind, N, T};

impl Budget {
    /// Somebody queued, of the lane of this rank or of none: whoever frees what it
    /// lacks is to know. What that is, or nothing if it lies free already.
    pub(crate) fn announce(&self, home: Option<usize>) -> Option<Reached> {
        // RING, SeqCst: the mark before the flags, against the turn's flags before
        // marks: a flag that is only read here is not about to be cleared by a turn
        // that does not see the mark.
        fence(Ordering::SeqCst);
        let own = home.and_then(|home| self.share(home).set(N | T).own_lack());
        own.map(Reached::by_rank)
            .or_else(|| self.set_everywhere(I | T).map(Reached::by_worker))
    }

    /// Sets flags everywhere; of which kind no token lay free, if of one.
    ///
    /// A share that has them already is only read: the caller did whatever must
    /// be seen by those who clear flags before a SeqCst fence.
    pub(crate) fn set_everywhere(&self, flags: u64) -> Option<Kind> {
        let (mut running, mut waiting) = (false, false);
        for share in self.shares() {
            let seen = share.load();
            let word = if seen.has_all(flags) {
                seen
            } else {
                share.set(flags)
            };
            running |= word.free(Kind::Running) > 0;
            waiting |= word.free(Kind::Waiting) > 0;
        }
        if !running {
            Some(Kind::Running)
        } else {
            (!waiting).then_some(Kind::Waiting)
        }
    }

    pub(crate) fn clear_everywhere(&self, flags: u64) {
        for share in self.shares() {
            share.clear(flags);
        }
    }
}
