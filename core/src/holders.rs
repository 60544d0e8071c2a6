//! Who keeps a gate alive: its handles, counted in one word, and the leases of owned
//! permits and tickets, counted where the threads are that take them and give
//! them back, so that an owned permit writes no line that another thread's writes.
//!
//! Only who has a handle takes a lease. Once the last handle has gone there are
//! never more of them: stripes read one after another that add up to none prove that
//! none is out.

use crossbeam_utils::CachePadded;

use crate::stripe::{OWNED, SHARED, stripe};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Holders {
    /// Gates that are left; the dispatcher thread is none of them.
    handles: CachePadded<AtomicUsize>,
    /// Leases that the threads of each stripe took, less those that they gave back.
    /// Given back elsewhere, a lease takes a stripe below 0: it wraps.
    leases: Box<[CachePadded<AtomicU64>]>,
}

/// Where this thread counts leases.
pub(crate) struct Stripe<'h> {
    cell: &'h AtomicU64,
    owned: bool,
}

impl Holders {
    /// One handle, no lease.
    pub(crate) fn new() -> Self {
        Holders {
            handles: CachePadded::new(AtomicUsize::new(1)),
            leases: (0..OWNED + SHARED)
                .map(|_| CachePadded::new(AtomicU64::new(0)))
                .collect(),
        }
    }

    pub(crate) fn add_handle(&self) {
        // Relaxed: who clones a handle has one.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// A gate went; true if it was the last.
    pub(crate) fn drop_handle(&self) -> bool {
        // LAST, AcqRel: as for any reference count; the last sees every lease taken.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    #[inline]
    pub(crate) fn stripe(&self) -> Stripe<'_> {
        let stripe = stripe();
        Stripe {
            cell: &self.leases[stripe],
            owned: stripe < OWNED,
        }
    }

    /// Whether no lease is out. Means something once the last handle has gone.
    pub(crate) fn no_lease_is_out(&self) -> bool {
        let out = self.leases.iter().fold(0, |sum: u64, cell| {
            // LEASE, Acquire: who gave one back is done with the gate.
            sum.wrapping_add(cell.load(Ordering::Acquire))
        });
        out == 0
    }

    /// Whether the gate is left to its dispatcher thread.
    pub(crate) fn are_gone(&self) -> bool {
        // LAST, Acquire: who left the last handle is done with it.
        self.handles.load(Ordering::Acquire) == 0 && self.no_lease_is_out()
    }
}

impl Stripe<'_> {
    /// The caller has a handle.
    #[inline]
    pub(crate) fn take(self) {
        // Relaxed: whoever asks whether one is out has seen the handle go.
        if self.owned {
            // Nobody else writes an owned stripe; who had it before left it as it is.
            let taken = self.cell.load(Ordering::Relaxed).wrapping_add(1);
            self.cell.store(taken, Ordering::Relaxed);
        } else {
            self.cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The caller has a lease. The gate may be gone before this returns: nothing of
    /// it is touched after the write.
    #[inline]
    pub(crate) fn give_back(self) {
        // LEASE, Release: what the holder did to the gate comes before its end.
        if self.owned {
            let left = self.cell.load(Ordering::Relaxed).wrapping_sub(1);
            self.cell.store(left, Ordering::Release);
        } else {
            self.cell.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn leases_may_be_given_back_by_other_threads() {
        let holders = Holders::new();
        for _ in 0..3 {
            // More threads at once than stripes.
            thread::scope(|scope| {
                for _ in 0..2 * (OWNED + SHARED) {
                    scope.spawn(|| holders.stripe().take());
                }
            });
            assert!(!holders.no_lease_is_out());
            for _ in 0..2 * (OWNED + SHARED) {
                assert!(!holders.no_lease_is_out());
                holders.stripe().give_back();
            }
            assert!(holders.no_lease_is_out());
        }
        assert!(!holders.are_gone(), "there is a handle");
        assert!(holders.drop_handle() && holders.are_gone());
    }
}
