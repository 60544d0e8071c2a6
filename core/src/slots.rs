//! Where queued requests wait: slots that are reused at once when somebody
//! leaves, so that nothing piles up behind a blocked head.
//!
//! A slot's state is one word, `age | TURN | status`. Ages are never reused, so
//! a stale reference to a slot can tell that it is stale.
//!
//! ```text
//!            occupy               offer (turn)              take
//!   DONE ────────────▶ WAITING ────────────────▶ OFFERED ────────────▶ DONE
//!     ▲                   │ cancel                  │ cancel
//!     └───────────────────┴─────────────────────────┘
//! ```
//!
//! `offer` also sets TURN until the turn has counted the offer and fetched the
//! waker. Of the turn and the ticket, whoever lets go of the slot last frees it
//! and settles the count.

use std::task::Waker;

use crate::publish::Published;
use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};
use crate::waker::WakerCell;

const DONE: u64 = 0;
const WAITING: u64 = 1;
const OFFERED: u64 = 2;
const STATUS: u64 = 3;
const TURN: u64 = 4;
const AGE: u32 = 3;

/// A queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) age: u64,
    pub(crate) lane: u32,
}

/// How a request left its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Still waiting: it held a place in the queue.
    Queued,
    /// It had been offered capacity.
    Offered(Offer),
}

/// Capacity that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Where the capacity is.
    pub(crate) share: u32,
    /// Whether the ticket let go of the slot last, and settles the count.
    pub(crate) settle: bool,
}

#[derive(Debug)]
pub(crate) struct Slot {
    state: AtomicU64,
    next_free: AtomicU32,
    lane: AtomicU32,
    share: AtomicU32,
    pub(crate) waker: WakerCell,
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
struct Chunk {
    slots: Box<[Slot]>,
    /// A bit per slot that was occupied since the turn looked, 64 to a word.
    fresh: Box<[AtomicU64]>,
    /// A bit per word of `fresh` that may not be 0.
    summary: Box<[AtomicU64]>,
    entries: Box<[UnsafeCell<Entry>]>,
}

impl Chunk {
    fn new(k: usize) -> Self {
        let len = (FIRST << k) as usize;
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        let entry = Entry {
            age: 0,
            slot: 0,
            lane: 0,
            next: 0,
        };
        let slot = || Slot {
            state: AtomicU64::new(DONE),
            next_free: AtomicU32::new(0),
            lane: AtomicU32::new(0),
            share: AtomicU32::new(0),
            waker: WakerCell::new(),
        };
        Chunk {
            slots: (0..len).map(|_| slot()).collect(),
            fresh: zeros(len.div_ceil(64)),
            summary: zeros(len.div_ceil(4096)),
            entries: (0..2 * len).map(|_| UnsafeCell::new(entry)).collect(),
        }
    }
}

#[cfg(not(tidegate_loom))]
const FIRST: u32 = 64;
#[cfg(tidegate_loom)]
const FIRST: u32 = 2;
const CHUNKS: usize = 18;

/// All slots of one gate.
#[derive(Debug)]
pub(crate) struct Slots {
    chunks: [Published<Chunk>; CHUNKS],
    /// Slots from here on were never used.
    unused: AtomicU32,
    /// `pops (40) | first free slot + 1 (24)`: the count keeps a popper that slept
    /// through other pops from succeeding (it would have to sleep through 2^40).
    free: AtomicU64,
    next_age: AtomicU64,
}

const INDEX: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX) - 1;

// SAFETY: `entries` belong to whoever holds the turn; everything else is Sync.
unsafe impl Sync for Slots {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Slots {}

impl Slots {
    pub(crate) fn new() -> Self {
        Slots {
            chunks: std::array::from_fn(|_| Published::empty()),
            unused: AtomicU32::new(0),
            free: AtomicU64::new(0),
            next_age: AtomicU64::new(1),
        }
    }

    /// A free slot, allocated if there is none: call without a reservation.
    pub(crate) fn acquire(&self) -> u32 {
        loop {
            if let Some(slot) = self.pop_free() {
                return slot;
            }
            // Relaxed: a slot that was never used carries nothing; its chunk is
            // PUBLISHed.
            let unused = self.unused.load(Ordering::Relaxed);
            if self.has_chunk_of(unused) {
                let claimed = self.unused.compare_exchange(
                    unused,
                    unused + 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                if claimed.is_ok() {
                    return unused;
                }
            }
        }
    }

    /// Sees to it that the slot exists. Of several who need its chunk, one makes
    /// it: there are at most twice as many slots as were in use at once. False
    /// for a slot beyond all that can be queued and offered; those are in use by
    /// calls in progress, and one of them will be free.
    fn has_chunk_of(&self, slot: u32) -> bool {
        let k = chunk_of(slot);
        match self.chunks.get(k) {
            Some(chunk) if chunk.get().is_none() => {
                chunk.get_or_publish(Box::new(Chunk::new(k)));
                true
            }
            chunk => chunk.is_some(),
        }
    }

    /// Fills a slot with a request, and marks it for the turn.
    pub(crate) fn occupy(&self, slot: u32, lane: u32) -> Place {
        // AGE, Release: whoever sees that this age was given out sees the marks
        // of those who queued before this one came. Requests that do not overlap
        // get ages in order through whatever ordered them.
        let age = self.next_age.fetch_add(1, Ordering::Release);
        let (chunk, at) = self.locate(slot);
        let here = &chunk.slots[at];
        // Relaxed: published by the state.
        here.lane.store(lane, Ordering::Relaxed);
        // ARRIVE, Release: the turn reads the lane after the state.
        here.state.store(age << AGE | WAITING, Ordering::Release);
        // ARRIVE, AcqRel: the mark publishes the slot; the summary always, since
        // whoever set another mark of this word may be asleep before its summary.
        chunk.fresh[at / 64].fetch_or(1 << (at % 64), Ordering::AcqRel);
        chunk.summary[at / 4096].fetch_or(1 << (at / 64 % 64), Ordering::AcqRel);
        Place { slot, age, lane }
    }

    /// Who comes from now on is at least this old.
    pub(crate) fn next_age(&self) -> u64 {
        // AGE, Acquire: the marks of all who were queued before one of those that
        // have an age below this came.
        self.next_age.load(Ordering::Acquire)
    }

    /// Calls `f` with every slot that was occupied since the last time, its age
    /// and its lane. The turn's alone.
    pub(crate) fn drain_fresh(&self, mut f: impl FnMut(u32, u64, u32)) {
        for (k, chunk) in self.published() {
            for (s, summary) in chunk.summary.iter().enumerate() {
                // ARRIVE, Acquire: as below. A swap only where there is something.
                if summary.load(Ordering::Acquire) == 0 {
                    continue;
                }
                // ARRIVE, AcqRel: with the arrival's two fetch-ors: what it marks
                // after this swap, it summarises after it too.
                for word in bits(summary.swap(0, Ordering::AcqRel)) {
                    let word = s * 64 + word;
                    for bit in bits(chunk.fresh[word].swap(0, Ordering::AcqRel)) {
                        let at = word * 64 + bit;
                        let here = &chunk.slots[at];
                        // ARRIVE, Acquire: then the lane is this request's.
                        let state = here.state.load(Ordering::Acquire);
                        if state & STATUS == WAITING {
                            // Relaxed: published by the state.
                            let lane = here.lane.load(Ordering::Relaxed);
                            f(first_of(k) + at as u32, state >> AGE, lane);
                        }
                    }
                }
            }
        }
    }

    /// Whether somebody arrived that the turn has not seen.
    pub(crate) fn any_fresh(&self) -> bool {
        self.published().any(|(_, chunk)| {
            // ARRIVE, Acquire: as in `drain_fresh`.
            chunk
                .summary
                .iter()
                .any(|summary| summary.load(Ordering::Acquire) != 0)
        })
    }

    pub(crate) fn is_waiting(&self, slot: u32, age: u64) -> bool {
        // LET-GO, Acquire: whoever left before this is done leaving.
        self.slot(slot).state.load(Ordering::Acquire) == age << AGE | WAITING
    }

    /// Offers capacity at `share`; false if the request has left. The turn's alone.
    pub(crate) fn offer(&self, slot: u32, age: u64, share: u32) -> bool {
        let here = self.slot(slot);
        if !self.is_waiting(slot, age) {
            return false;
        }
        // Relaxed: published by the state. The request that may have followed
        // in this slot has no share yet.
        here.share.store(share, Ordering::Relaxed);
        let waiting = age << AGE | WAITING;
        let offered = age << AGE | TURN | OFFERED;
        // OFFER, Release: the ticket that sees the offer sees the share, and the
        // capacity. Acquire: who cancelled before is done with the slot.
        here.state
            .compare_exchange(waiting, offered, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The turn has counted an offer and fetched the waker. True if the ticket let
    /// go before: then the turn settles the count.
    pub(crate) fn let_go(&self, slot: u32) -> bool {
        // LET-GO, AcqRel: of the two that let go, the second frees the slot, after
        // everything that the first did there.
        let old = self.slot(slot).state.fetch_and(!TURN, Ordering::AcqRel);
        let last = old & STATUS == DONE;
        if last {
            self.release(slot);
        }
        last
    }

    /// Takes the offer up, if there is one.
    pub(crate) fn take(&self, place: Place) -> Option<Offer> {
        let here = self.slot(place.slot);
        // OFFER, Acquire: then the share is ours.
        let state = here.state.load(Ordering::Acquire);
        debug_assert_eq!(state >> AGE, place.age, "a ticket leaves its slot once");
        (state & STATUS == OFFERED).then(|| match self.leave(place) {
            Left::Offered(offer) => offer,
            Left::Queued => unreachable!("an offer stands until its ticket answers it"),
        })
    }

    /// Leaves the slot, whatever its state.
    pub(crate) fn leave(&self, place: Place) -> Left {
        let here = self.slot(place.slot);
        // Foreign code: dropped before anything is let go of.
        drop(here.waker.take());
        // OFFER, Acquire: as in `take`.
        let mut state = here.state.load(Ordering::Acquire);
        loop {
            debug_assert_eq!(state >> AGE, place.age, "a ticket leaves its slot once");
            // Relaxed: read before the slot is let go of, and published by OFFER.
            let share = here.share.load(Ordering::Relaxed);
            // LET-GO, AcqRel: as in `let_go`. One of offer and cancel comes second
            // and sees the first.
            match here.state.compare_exchange_weak(
                state,
                state & !STATUS | DONE,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let settle = state & TURN == 0;
                    if settle {
                        self.release(place.slot);
                    }
                    return match state & STATUS {
                        OFFERED => Left::Offered(Offer { share, settle }),
                        _ => Left::Queued,
                    };
                }
                Err(now) => state = now,
            }
        }
    }

    /// All wakers that wait in any slot.
    pub(crate) fn take_wakers(&self) -> impl Iterator<Item = Waker> {
        self.published()
            .flat_map(|(_, chunk)| chunk.slots.iter())
            .filter_map(|slot| slot.waker.take())
    }

    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        let (chunk, at) = self.locate(slot);
        &chunk.slots[at]
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

    fn published(&self) -> impl Iterator<Item = (usize, &Chunk)> {
        self.chunks.iter().map_while(Published::get).enumerate()
    }

    fn locate(&self, slot: u32) -> (&Chunk, usize) {
        let k = chunk_of(slot);
        let chunk = self.chunks[k].get().expect("a slot in use has its chunk");
        (chunk, (slot - first_of(k)) as usize)
    }

    /// Gives an unused slot back.
    pub(crate) fn release(&self, slot: u32) {
        // Relaxed: only the CAS decides.
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the CAS.
            self.slot(slot)
                .next_free
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
            let next = self.slot(slot).next_free.load(Ordering::Relaxed);
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

/// The chunk that holds this slot: chunk k begins at `FIRST * (2^k - 1)`.
fn chunk_of(slot: u32) -> usize {
    ((slot / FIRST) + 1).ilog2() as usize
}

fn first_of(chunk: usize) -> u32 {
    FIRST * ((1 << chunk) - 1)
}

/// The places of a word's bits that are set.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
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

    #[test]
    fn there_are_slots_for_all_that_can_be_queued_and_offered() {
        use crate::limits::{MAX_ENGINE_REQUEST_LIMIT, MAX_RANKS, MAX_WORKER_QUEUE_LIMIT};
        let offered = MAX_ENGINE_REQUEST_LIMIT * MAX_RANKS as u32;
        let all = first_of(CHUNKS);
        assert!(all > MAX_WORKER_QUEUE_LIMIT + offered, "{all}");
        assert!(u64::from(all) < INDEX_MASK, "{all}");
    }

    #[test]
    fn a_left_slot_is_free_at_once_and_ages_tell_stale_references() {
        let slots = Slots::new();
        let first = slots.occupy(slots.acquire(), 3);
        assert_eq!(slots.leave(first), Left::Queued);
        let second = slots.occupy(slots.acquire(), 4);
        assert_eq!(second.slot, first.slot);
        assert!(!slots.offer(first.slot, first.age, 0));
        let mut seen = Vec::new();
        slots.drain_fresh(|slot, age, lane| seen.push((slot, age, lane)));
        assert_eq!(seen, [(second.slot, second.age, 4)]);
        assert!(!slots.any_fresh());
    }

    #[test]
    fn the_last_to_let_go_frees_the_slot() {
        let slots = Slots::new();
        let place = slots.occupy(slots.acquire(), 0);
        assert!(slots.offer(place.slot, place.age, 7));
        assert_eq!(
            slots.take(place),
            Some(Offer {
                share: 7,
                settle: false
            })
        );
        assert_ne!(slots.acquire(), place.slot, "the turn still looks at it");
        assert!(slots.let_go(place.slot));
        assert_eq!(slots.acquire(), place.slot);
    }
}
