//! How many are queued, each count in one word with its limit, so that the
//! limit holds exactly while it moves.

use crate::reached::Reached;
use crate::sync::{AtomicU64, Ordering};

const FIELD: u32 = 22;
const FIELD_MASK: u64 = (1 << FIELD) - 1;
const OFFERED: u32 = FIELD;
const LACKED: u32 = 2 * FIELD;
const LACKED_MASK: u64 = 7;
const LIMIT: u32 = LACKED + 3;

/// The most that the queues of one worker can hold together. A lane's count exceeds
/// it only by arrivals that find the worker's queue full; the rest of the field is
/// for them.
pub(crate) const MAX_QUEUED: u64 = FIELD_MASK - (1 << 16);
/// The largest queue limit that a lane's word can hold.
pub(crate) const MAX_QUEUE_LIMIT: u32 = (1 << (64 - LIMIT)) - 1;

/// A lane's queue: `limit (17 bits) | lacked (3) | offered (22) | queued (22)`.
#[derive(Debug)]
pub(crate) struct QueueWord(AtomicU64);

/// One reading of a [`QueueWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) queued: u64,
    pub(crate) offered: u64,
    pub(crate) limit: u64,
    /// What the lane's oldest lacked when somebody last looked: whoever must stay
    /// behind it is refused for the same. Nothing while all who are counted as
    /// queued are still arriving.
    pub(crate) lacked: Option<Reached>,
}

impl QueueWord {
    pub(crate) fn new(limit: u32) -> Self {
        QueueWord(AtomicU64::new(u64::from(limit) << LIMIT))
    }

    fn load(&self) -> u64 {
        // Acquire: counts and the words read after them belong together in a snapshot.
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> QueueCounts {
        counts(self.load())
    }

    /// Counts one more, if the limit leaves room: how many are queued with it.
    pub(crate) fn reserve(&self, limited: bool) -> Option<u64> {
        let mut old = self.load();
        loop {
            let seen = counts(old);
            if limited && seen.queued >= seen.limit {
                return None;
            }
            let said = match seen.queued {
                0 => with_lacked(old, None),
                _ => old,
            };
            // PLACE, AcqRel: a place that a leaver freed is reused after it left.
            match self
                .0
                .compare_exchange_weak(old, said + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(seen.queued + 1),
                Err(now) => old = now,
            }
        }
    }

    /// What the lane's oldest lacks now. The turn's alone.
    pub(crate) fn set_lacked(&self, lacked: Reached) {
        self.change(Some(lacked), |seen| seen.lacked != Some(lacked));
    }

    /// What a request lacked that has queued, if nothing else is said.
    pub(crate) fn say_lacked(&self, lacked: Reached) {
        self.change(Some(lacked), |seen| seen.lacked.is_none());
    }

    /// After a reservation: whoever is alone in the queue is still arriving, whatever
    /// was said of those who left it.
    pub(crate) fn unsay_if_alone(&self) {
        self.change(None, |seen| seen.queued == 1 && seen.lacked.is_some());
    }

    fn change(&self, lacked: Option<Reached>, wanted: impl Fn(QueueCounts) -> bool) {
        let mut old = self.load();
        while wanted(counts(old)) {
            let new = with_lacked(old, lacked);
            // AcqRel: a refusal that names it looked within its call.
            match self
                .0
                .compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// One queued request left, or its reservation is given back.
    pub(crate) fn leave(&self) {
        // PLACE, Release: see `reserve`.
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// One queued request was offered its capacity.
    pub(crate) fn offer(&self) {
        // AcqRel, one step: a reader sees it queued or offered, never both or neither.
        self.0.fetch_add((1 << OFFERED) - 1, Ordering::AcqRel);
    }

    /// An offered request took its capacity up, or gave it back.
    pub(crate) fn settle_offer(&self) {
        // AcqRel: as above.
        self.0.fetch_sub(1 << OFFERED, Ordering::AcqRel);
    }

    pub(crate) fn set_limit(&self, limit: u32) {
        let by = u64::from(limit).wrapping_sub(self.read().limit);
        // AcqRel: only the turn changes limits, so the difference holds.
        self.0.fetch_add(by.wrapping_shl(LIMIT), Ordering::AcqRel);
    }
}

fn counts(word: u64) -> QueueCounts {
    QueueCounts {
        queued: word & FIELD_MASK,
        offered: word >> OFFERED & FIELD_MASK,
        limit: word >> LIMIT,
        lacked: Reached::from_bits(word >> LACKED & LACKED_MASK),
    }
}

fn with_lacked(word: u64, lacked: Option<Reached>) -> u64 {
    word & !(LACKED_MASK << LACKED) | Reached::to_bits(lacked) << LACKED
}

/// The worker's queue: its limit, all ranks together, and how many are queued.
#[derive(Debug)]
pub(crate) struct TotalWord(AtomicU64);

impl TotalWord {
    pub(crate) fn new(limit: u64) -> Self {
        TotalWord(AtomicU64::new(limit << 32))
    }

    /// Queued now, and the limit.
    pub(crate) fn read(&self) -> (u64, u64) {
        // Acquire: a refusal that names this limit looked here within its call.
        let word = self.0.load(Ordering::Acquire);
        (word & 0xffff_ffff, word >> 32)
    }

    /// Counts one more, if the limit leaves room: whether it did.
    pub(crate) fn reserve(&self) -> bool {
        let mut seen = self.read();
        loop {
            let (queued, limit) = seen;
            if queued >= limit {
                return false;
            }
            let old = limit << 32 | queued;
            // AcqRel: as in `QueueWord::reserve`.
            match self
                .0
                .compare_exchange_weak(old, old + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(_) => seen = self.read(),
            }
        }
    }

    pub(crate) fn leave(&self) {
        // AcqRel: as in `QueueWord::leave`.
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// A step in the word's order that changes nothing: who comes second sees what
    /// the first did before.
    pub(crate) fn mark(&self) {
        // ENTRY, AcqRel: carries the entries before it to the looks after the next.
        self.0.fetch_add(0, Ordering::AcqRel);
    }

    pub(crate) fn set_limit(&self, limit: u64) {
        let by = limit.wrapping_sub(self.read().1);
        // AcqRel: only the turn changes limits.
        self.0.fetch_add(by.wrapping_shl(32), Ordering::AcqRel);
    }
}
