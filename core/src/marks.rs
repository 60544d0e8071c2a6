//! Marks of those who arrived since the turn last looked: a bit per slot, and a
//! bit for each word of them.

use crate::chunks::{Chunk, Slots, first_of};
use crate::state::State;
use crate::sync::Ordering;

impl Chunk {
    /// Marks a slot that was just filled.
    pub(crate) fn mark(&self, at: usize) {
        // ARRIVE, AcqRel: the mark publishes the slot; the summary always, since
        // whoever set another mark of this word may be asleep before its summary.
        self.fresh[at / 64].fetch_or(1 << (at % 64), Ordering::AcqRel);
        self.summary[at / 4096].fetch_or(1 << (at / 64 % 64), Ordering::AcqRel);
    }
}

impl Slots {
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
                        // ARRIVE, Acquire: then it is counted in its queue.
                        let state = chunk.slots[at].state.load(Ordering::Acquire);
                        if let Some((age, lane)) = State(state).queued() {
                            f(first_of(k) + at as u32, age, lane);
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
