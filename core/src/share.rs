//! What one lane owns: its share word, its queue word, its counters.

use crossbeam_utils::CachePadded;

use crate::counters::Counters;
use crate::error::Lane;
use crate::sync::{AtomicU64, Ordering};
use crate::word::Word;
use crate::word::cell::Cell;

/// A lane on its own cache line. *Unspecified* has one too; its share word
/// serves as the only rank's until the engine reports, and as the first
/// reported rank's afterwards.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct LaneState {
    pub(crate) name: Lane,
    pub(crate) queue: QueueWord,
    pub(crate) counters: Counters,
}

/// A share of the worker's capacity, with the home lane's own limits.
pub(crate) type Share = CachePadded<Cell>;

pub(crate) fn share(running: u32, waiting: u32, flags: u64) -> Share {
    let cell = Cell::new(Word::full_room(running, waiting));
    cell.set(flags);
    CachePadded::new(cell)
}

const FIELD: u32 = 22;
const FIELD_MASK: u64 = (1 << FIELD) - 1;
const OFFERED: u32 = FIELD;
const LIMIT: u32 = 2 * FIELD;

/// The most that the queues of one worker can hold together.
pub(crate) const MAX_QUEUED: u64 = FIELD_MASK;
/// The largest queue limit that a lane's word can hold.
pub(crate) const MAX_QUEUE_LIMIT: u32 = (1 << 20) - 1;

/// A queue's counts and its limit in one word, so that the limit holds exactly
/// while it moves: `limit (20 bits) | offered (22) | queued (22)`.
#[derive(Debug)]
pub(crate) struct QueueWord(AtomicU64);

/// One reading of a [`QueueWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) queued: u64,
    pub(crate) offered: u64,
    pub(crate) limit: u64,
}

impl QueueWord {
    pub(crate) fn new(limit: u32) -> Self {
        QueueWord(AtomicU64::new(u64::from(limit) << LIMIT))
    }

    pub(crate) fn read(&self) -> QueueCounts {
        // Acquire: counts and the words read after them belong together in a snapshot.
        let word = self.0.load(Ordering::Acquire);
        QueueCounts {
            queued: word & FIELD_MASK,
            offered: word >> OFFERED & FIELD_MASK,
            limit: word >> LIMIT,
        }
    }

    /// Counts one more, if the limit leaves room.
    pub(crate) fn reserve(&self, limited: bool) -> Result<(), QueueCounts> {
        let mut seen = self.read();
        loop {
            if limited && seen.queued >= seen.limit {
                return Err(seen);
            }
            let old = seen.queued | seen.offered << OFFERED | seen.limit << LIMIT;
            // PLACE, AcqRel: a place that a leaver freed is reused after it left.
            match self
                .0
                .compare_exchange_weak(old, old + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(_) => seen = self.read(),
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

    pub(crate) fn reserve(&self) -> Result<(), (u64, u64)> {
        let mut seen = self.read();
        loop {
            let (queued, limit) = seen;
            if queued >= limit {
                return Err(seen);
            }
            let old = limit << 32 | queued;
            // AcqRel: as in `QueueWord::reserve`.
            match self
                .0
                .compare_exchange_weak(old, old + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(_) => seen = self.read(),
            }
        }
    }

    pub(crate) fn leave(&self) {
        // AcqRel: as in `QueueWord::leave`.
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn set_limit(&self, limit: u64) {
        let by = limit.wrapping_sub(self.read().1);
        // AcqRel: only the turn changes limits.
        self.0.fetch_add(by.wrapping_shl(32), Ordering::AcqRel);
    }
}
