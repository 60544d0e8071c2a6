//! Where the slots are: in chunks, each twice as large as the one before, which
//! once they are there never move.

use crate::publish::Published;
use crate::sync::{AtomicU32, AtomicU64, UnsafeCell};
use crate::waker::WakerCell;

/// One queued request. Two fill a cache line, and none lies on two: whoever leaves a
/// long queue waits for the line of its slot, and for no other.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Slot {
    /// A [`State`](crate::state::State).
    pub(crate) state: AtomicU64,
    /// And beside it, while the slot is free, the next free one.
    pub(crate) waker: WakerCell,
}

#[cfg(not(any(tidegate_loom, tidegate_stall)))]
const _: () = assert!(size_of::<Slot>() == 32);

impl Slot {
    pub(crate) fn new() -> Self {
        Slot {
            state: AtomicU64::new(0),
            waker: WakerCell::new(),
        }
    }
}

/// An entry of a lane's list of queued requests; see [`lists`](crate::lists).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) age: u64,
    pub(crate) slot: u32,
    pub(crate) lane: u32,
    pub(crate) next: u32,
}

/// Slots of one doubling, the marks of those that the turn has not seen, and
/// room in the turn's lists for twice as many.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) slots: Box<[Slot]>,
    /// A bit per slot that was occupied since the turn looked, 64 to a word.
    pub(crate) fresh: Box<[AtomicU64]>,
    /// A bit per word of `fresh` that may not be 0.
    pub(crate) summary: Box<[AtomicU64]>,
    entries: Box<[UnsafeCell<Entry>]>,
}

impl Chunk {
    pub(crate) fn new(len: usize) -> Self {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        let entry = Entry {
            age: 0,
            slot: 0,
            lane: 0,
            next: 0,
        };
        Chunk {
            slots: (0..len).map(|_| Slot::new()).collect(),
            fresh: zeros(len.div_ceil(64)),
            summary: zeros(len.div_ceil(4096)),
            entries: (0..2 * len).map(|_| UnsafeCell::new(entry)).collect(),
        }
    }
}

#[cfg(not(tidegate_loom))]
pub(crate) const FIRST: u32 = 64;
#[cfg(tidegate_loom)]
pub(crate) const FIRST: u32 = 2;
pub(crate) const CHUNKS: usize = 18;

/// All slots of one gate.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) chunks: [Published<Chunk>; CHUNKS],
    /// `pops (40) | first free slot + 1 (24)`: the count keeps a popper that slept
    /// through other pops from succeeding (it would have to sleep through 2^40).
    pub(crate) free: AtomicU64,
    /// The first slot that was never used.
    pub(crate) unused: AtomicU32,
    pub(crate) next_age: AtomicU64,
}

// SAFETY: `entries` belong to whoever holds the turn; everything else is Sync.
unsafe impl Sync for Slots {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Slots {}

impl Slots {
    pub(crate) fn new() -> Self {
        Slots {
            chunks: std::array::from_fn(|_| Published::empty()),
            free: AtomicU64::new(0),
            unused: AtomicU32::new(0),
            next_age: AtomicU64::new(1),
        }
    }

    /// Entries of the turn's lists, of the chunks from `known` on: their ids.
    pub(crate) fn entries_from(
        &self,
        known: usize,
    ) -> impl Iterator<Item = (usize, std::ops::Range<u32>)> {
        self.published().skip(known).map(|(k, chunk)| {
            (
                k + 1,
                2 * first_of(k)..2 * first_of(k) + chunk.entries.len() as u32,
            )
        })
    }

    /// One entry of the turn's lists.
    ///
    /// # Safety
    /// The caller holds the turn, and `f` asks for no other entry.
    pub(crate) unsafe fn entry<R>(&self, id: u32, f: impl FnOnce(&mut Entry) -> R) -> R {
        let (chunk, _) = self.locate(id / 2);
        let at = (id - 2 * first_of(chunk_of(id / 2))) as usize;
        chunk.entries[at].with_mut(|entry| {
            // SAFETY: by the caller's promise nobody else touches the entry.
            f(unsafe { &mut *entry })
        })
    }

    pub(crate) fn published(&self) -> impl Iterator<Item = (usize, &Chunk)> {
        self.chunks.iter().map_while(Published::get).enumerate()
    }

    pub(crate) fn locate(&self, slot: u32) -> (&Chunk, usize) {
        let k = chunk_of(slot);
        let chunk = self.chunks[k].get().expect("a slot in use has its chunk");
        (chunk, (slot - first_of(k)) as usize)
    }

    /// Makes sure that this slot and all before it are there. Whoever needs one
    /// allocates its chunk, so that nobody waits for another to do it.
    pub(crate) fn grow_to(&self, slot: u32) {
        // The slots are as many as can be queued and offered, and a thousand calls.
        for k in 0..=chunk_of(slot) {
            if self.chunks[k].get().is_none() {
                self.chunks[k].get_or_publish(Box::new(Chunk::new((FIRST << k) as usize)));
            }
        }
    }
}

/// The chunk that holds this slot: chunk k begins at `FIRST * (2^k - 1)`.
pub(crate) fn chunk_of(slot: u32) -> usize {
    ((slot / FIRST) + 1).ilog2() as usize
}

pub(crate) fn first_of(chunk: usize) -> u32 {
    FIRST * ((1 << chunk) - 1)
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_and_entries_find_their_chunks() {
        assert_eq!(chunk_of(0), 0);
        assert_eq!(chunk_of(FIRST - 1), 0);
        assert_eq!(chunk_of(FIRST), 1);
        assert_eq!(chunk_of(3 * FIRST - 1), 1);
        assert_eq!(chunk_of(3 * FIRST), 2);
    }
}
