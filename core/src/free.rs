//! Free slots: a stack through the slots themselves, and those never used.

use crate::chunks::Slots;
use crate::sync::{AtomicU32, Ordering};

const INDEX: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX) - 1;

impl Slots {
    /// A free slot, allocated if there is none: call without a reservation.
    pub(crate) fn acquire(&self) -> u32 {
        self.pop_free().unwrap_or_else(|| {
            // Relaxed: an index that nobody else gets.
            let slot = self.unused.fetch_add(1, Ordering::Relaxed);
            self.grow_to(slot);
            slot
        })
    }

    /// Gives an unused slot back.
    pub(crate) fn release(&self, slot: u32) {
        self.push_free(slot);
    }

    /// Of a free slot, the next one plus 1.
    fn next_free(&self, slot: u32) -> &AtomicU32 {
        &self.slot(slot).waker.beside
    }

    fn push_free(&self, slot: u32) {
        // Relaxed: only the CAS decides.
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the CAS.
            self.next_free(slot)
                .store((head & INDEX_MASK) as u32, Ordering::Relaxed);
            let new = head & !INDEX_MASK | u64::from(slot + 1);
            // FREE, Release: the slot is as it was left.
            match self
                .free
                .compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop_free(&self) -> Option<u32> {
        // FREE, Acquire: the slot as its last owner left it.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let slot = u32::try_from(head & INDEX_MASK).ok()?.checked_sub(1)?;
            // Relaxed: if it is stale, so is `head`, and the CAS fails.
            let next = self.next_free(slot).load(Ordering::Relaxed);
            let pops = (head >> INDEX).wrapping_add(1);
            let new = pops << INDEX | u64::from(next);
            match self
                .free
                .compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::chunks::{CHUNKS, first_of};

    #[test]
    fn there_are_slots_for_all_that_can_be_queued_and_offered() {
        use crate::queue::MAX_QUEUED;
        let all = first_of(CHUNKS);
        assert!(u64::from(all) > 2 * MAX_QUEUED, "{all}");
        assert!(u64::from(all) < INDEX_MASK, "{all}");
    }
}
