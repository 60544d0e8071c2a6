//! Striped counters: counting writes no line that another stripe's threads write,
//! and in a thread's own stripe it is no read-modify-write either.

use crossbeam_utils::CachePadded;

use crate::stripe::{OWNED, SHARED, stripe};
use crate::sync::{Ordering, Tally};

/// What is counted, for each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    AdmittedDirect,
    AdmittedQueue,
    RejectedRank,
    RejectedWorker,
    Cancelled,
}

const EVENTS: usize = 5;

/// One lane's counters; none where the gate does not count.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[CachePadded<[Tally; EVENTS]>]>,
}

/// This thread's place in one counter.
pub(crate) struct Counter<'c> {
    cell: Option<&'c Tally>,
    /// What an owned one will be, 0 for others: read ahead, since a load behind the
    /// locked step that is counted would wait for it.
    next: u64,
}

impl Counters {
    pub(crate) fn new(counting: bool) -> Self {
        let stripes = if counting { OWNED + SHARED } else { 0 };
        Counters {
            stripes: (0..stripes).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Looked up before what is to be counted, so that counting is one store after it.
    /// Nothing else may be counted in this lane between.
    #[inline]
    pub(crate) fn mine(&self, event: Event) -> Counter<'_> {
        if self.stripes.is_empty() {
            let (cell, next) = (None, 0);
            return Counter { cell, next };
        }
        let stripe = stripe();
        let cell = self.stripes.get(stripe).map(|cells| &cells[event as usize]);
        // Relaxed: what this thread stored, or who owned the stripe before it.
        let next = cell
            .filter(|_| stripe < OWNED)
            .map_or(0, |cell| cell.load(Ordering::Relaxed) + 1);
        Counter { cell, next }
    }

    pub(crate) fn count(&self, event: Event) {
        self.mine(event).count();
    }

    pub(crate) fn total(&self, event: Event) -> u64 {
        // Relaxed: a statistic; nothing else is read through it.
        self.stripes
            .iter()
            .map(|stripe| stripe[event as usize].load(Ordering::Relaxed))
            .sum()
    }
}

impl Counter<'_> {
    #[inline]
    pub(crate) fn count(self) {
        let Some(cell) = self.cell else { return };
        // Relaxed: a statistic. No other thread writes an owned stripe; who owned
        // it before gave it back with all its counts.
        if self.next == 0 {
            cell.fetch_add(1, Ordering::Relaxed);
        } else {
            cell.store(self.next, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_lost_however_many_threads_count() {
        let counters = Counters::new(true);
        for round in 1..=3 {
            // More at once than stripes, and all of them new.
            thread::scope(|scope| {
                for _ in 0..2 * (OWNED + SHARED) {
                    scope.spawn(|| (0..100).for_each(|_| counters.count(Event::Cancelled)));
                }
            });
            let threads = 2 * (OWNED + SHARED) as u64;
            assert_eq!(counters.total(Event::Cancelled), round * threads * 100);
        }
        assert_eq!(counters.total(Event::AdmittedDirect), 0);
    }

    #[test]
    fn who_does_not_count_finds_nothing() {
        let counters = Counters::new(false);
        counters.count(Event::AdmittedDirect);
        assert_eq!(counters.total(Event::AdmittedDirect), 0);
    }
}
