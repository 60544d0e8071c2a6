//! The atomic behind the share word: the only file that changes one.

use super::step::{self, Relaxed, Who};
use super::{Delta, Kind, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// A share's word, and how often its tokens ran out.
#[derive(Debug)]
pub(crate) struct Cell {
    word: AtomicU64,
    /// Bumped by whoever takes the last token of a kind, before its CAS; see
    /// [`Budget::empty`](crate::budget::Budget::empty).
    run_outs: AtomicU32,
}

/// A step that cannot be taken; the word that says so.
pub(crate) type Denied = Word;

impl Cell {
    pub(crate) fn new(word: Word) -> Self {
        Cell {
            word: AtomicU64::new(word.0),
            run_outs: AtomicU32::new(0),
        }
    }

    #[inline]
    pub(crate) fn load(&self) -> Word {
        // RUN-OUT, Acquire: whoever sees a share empty also sees the run-out
        // that was counted before it.
        Word(self.word.load(Ordering::Acquire))
    }

    pub(crate) fn run_outs(&self) -> u32 {
        // RUN-OUT, Acquire: keeps the scan's loads between its two sums, and
        // shows them what the counting threads did before they counted.
        self.run_outs.load(Ordering::Acquire)
    }

    /// [`step::enter`]: one CAS on the home word.
    #[inline]
    pub(crate) fn enter(&self, who: Who) -> Result<(), Denied> {
        self.apply(|word| step::enter(word, who), true).map(|_| ())
    }

    /// [`step::enter_shared`]: one CAS.
    #[inline]
    pub(crate) fn enter_shared(&self, who: Who) -> Result<(), Denied> {
        self.apply(|word| step::enter_shared(word, who), true)
            .map(|_| ())
    }

    /// [`step::occupy`].
    pub(crate) fn occupy(&self, who: Who) -> Result<(), Denied> {
        self.apply(|word| step::occupy(word, who), false)
            .map(|_| ())
    }

    /// [`step::take`].
    pub(crate) fn take(&self, kind: Kind, who: Who) -> Result<(), Denied> {
        self.apply(|word| step::take(word, kind, who), true)
            .map(|_| ())
    }

    /// Puts a token down, where the share's own lane could use it when this looked:
    /// the word before it. No CAS: where others come in between, the tokens are more
    /// than the lane could use by as many as came, and who looks then goes elsewhere.
    #[inline]
    pub(crate) fn put(&self, kind: Kind) -> Result<Word, Denied> {
        let seen = self.load();
        if step::has_place(seen, kind) {
            Ok(self.add(Delta::tokens(kind, 1)))
        } else {
            Err(seen)
        }
    }

    /// [`step::drain`]: how many it took.
    pub(crate) fn drain(&self, kind: Kind, most: u32) -> u32 {
        self.move_many(|word| step::drain(word, kind, most), true)
    }

    /// [`step::shrink`]: how many tokens it took.
    pub(crate) fn shrink(&self, kind: Kind, by: u32) -> u32 {
        let moved = self.apply(|word| Some(step::shrink(word, kind, by).0), true);
        let before = moved.expect("it always can");
        step::shrink(before, kind, by).1
    }

    /// [`step::fill`]: how many it put down.
    pub(crate) fn fill(&self, kind: Kind, most: u32) -> u32 {
        self.move_many(|word| step::fill(word, kind, most), false)
    }

    /// [`step::relax`]: what came of it.
    pub(crate) fn relax(&self, wanted: u64) -> Relaxed {
        let mut seen = self.load();
        loop {
            let relaxed = step::relax(seen, wanted);
            let (Relaxed::Touched(new) | Relaxed::Cleared(new)) = relaxed else {
                return relaxed;
            };
            // RING, AcqRel: the arrival that touched it is seen by the look at
            // the arrivals that follows; one that comes after finds the flags gone.
            match self.word.compare_exchange_weak(
                seen.0,
                new.0,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return relaxed,
                Err(now) => seen = Word(now),
            }
        }
    }

    fn move_many(&self, step: impl Fn(Word) -> Option<(Word, u32)>, takes_tokens: bool) -> u32 {
        let moved = self.apply(|word| step(word).map(|(new, _)| new), takes_tokens);
        moved.ok().and_then(step).map_or(0, |(_, many)| many)
    }

    /// Applies a change that always can be: the word before it.
    #[inline]
    pub(crate) fn add(&self, delta: Delta) -> Word {
        // HAND-OVER, Release: what the request did before it gave back is
        // visible to whoever enters on what it gave. Acquire: the flag that
        // comes back in the same word (RING) was set after its setter's
        // queueing, which the turn that this rings must see.
        Word(self.word.fetch_add(delta.0, Ordering::AcqRel))
    }

    /// Sets flags: the word before it.
    pub(crate) fn set(&self, flags: u64) -> Word {
        // RING, AcqRel: with the releaser's fetch-add, one of the two comes
        // second in the word's order, and sees what the other did.
        Word(self.word.fetch_or(flags, Ordering::AcqRel))
    }

    /// Clears flags: the word before it.
    pub(crate) fn clear(&self, flags: u64) -> Word {
        // RING, AcqRel: an arrival that set the flag before is seen by the
        // look at the arrivals that follows this.
        Word(self.word.fetch_and(!flags, Ordering::AcqRel))
    }

    #[inline(always)]
    fn apply(
        &self,
        step: impl Fn(Word) -> Option<Word>,
        takes_tokens: bool,
    ) -> Result<Word, Denied> {
        // RUN-OUT, Acquire: a denial goes to callers who scan.
        let mut seen = Word(self.word.load(Ordering::Acquire));
        loop {
            let Some(new) = step(seen) else {
                return Err(seen);
            };
            if takes_tokens && new.ran_out() {
                // RUN-OUT, Release: published by the CAS below too; but a scan
                // may see it before that, and must then see the tokens that
                // this thread put down elsewhere first.
                self.run_outs.fetch_add(1, Ordering::Release);
            }
            // HAND-OVER, Acquire: what earlier holders did is visible to this
            // one. Release: publishes the run-out counted above.
            match self.word.compare_exchange_weak(
                seen.0,
                new.0,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = Word(now),
            }
        }
    }
}
