//! What one lane owns: its share of the capacity, its queue word, its counters.

use crossbeam_utils::CachePadded;

use crate::counters::Counters;
use crate::error::Lane;
use crate::queue::QueueWord;
use crate::sync::{Ordering, Tally};
use crate::word::Word;
use crate::word::cell::Cell;

/// A lane on its own cache line; *unspecified* has one too.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct LaneState {
    pub(crate) name: Lane,
    pub(crate) queue: QueueWord,
    /// How many of its queued requests have been offered capacity. The turn's alone
    /// to write.
    pub(crate) turns: Tally,
    pub(crate) counters: Counters,
}

impl LaneState {
    /// One of its queued requests was offered capacity. The turn's alone.
    pub(crate) fn count_turn(&self) {
        // Relaxed: a statistic, which nobody else writes.
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns + 1, Ordering::Relaxed);
    }
}

/// A share of the worker's capacity, with the home lane's own limits. The first
/// serves as the only one until the engine reports, then as the first rank's.
pub(crate) type Share = CachePadded<Cell>;

/// A share without requests, with these limits of its own and so many tokens.
pub(crate) fn share(limits: (u32, u32), tokens: (u32, u32)) -> Share {
    CachePadded::new(Cell::new(Word::new(limits, tokens)))
}
