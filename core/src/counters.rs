//! Striped counters: counting writes no line that another stripe's threads write.

use crossbeam_utils::CachePadded;

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

/// Stripes of every lane: threads beyond that share.
#[cfg(not(tidegate_loom))]
pub(crate) const STRIPES: usize = 16;
#[cfg(tidegate_loom)]
pub(crate) const STRIPES: usize = 1;

/// One lane's counters.
#[derive(Debug)]
pub(crate) struct Counters {
    stripes: Box<[CachePadded<[Tally; EVENTS]>]>,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Counters {
            stripes: (0..STRIPES).map(|_| CachePadded::default()).collect(),
        }
    }

    #[inline]
    pub(crate) fn count(&self, event: Event) {
        let cell = &self.stripes[stripe()][event as usize];
        // Relaxed: a statistic; nothing else is read through it.
        cell.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn total(&self, event: Event) -> u64 {
        // Relaxed: as above.
        self.stripes
            .iter()
            .map(|stripe| stripe[event as usize].load(Ordering::Relaxed))
            .sum()
    }
}

/// The only stripe: a model's threads must be the same in every execution.
#[cfg(tidegate_loom)]
pub(crate) fn stripe() -> usize {
    0
}

/// This thread's stripe; also its hint for where to look for capacity first.
#[cfg(not(tidegate_loom))]
#[inline]
pub(crate) fn stripe() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static MINE: usize =
            // Relaxed: any distribution over the stripes is right.
            NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % STRIPES;
    }
    // During a thread's last moments its stripe may be gone already.
    MINE.try_with(|mine| *mine).unwrap_or(0)
}
