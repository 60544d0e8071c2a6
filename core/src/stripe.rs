//! A number for each thread: whose counters are its own.

/// Stripes that belong to one living thread each.
#[cfg(not(tidegate_loom))]
pub(crate) const OWNED: usize = 16;
/// Stripes for the threads beyond that, which share them.
#[cfg(not(tidegate_loom))]
pub(crate) const SHARED: usize = 4;

#[cfg(not(tidegate_loom))]
pub(crate) use owned::{hint, stripe};

/// The only stripe, shared: a model's threads must be the same in every execution.
#[cfg(tidegate_loom)]
pub(crate) const OWNED: usize = 0;
#[cfg(tidegate_loom)]
pub(crate) const SHARED: usize = 1;
#[cfg(tidegate_loom)]
pub(crate) fn stripe() -> usize {
    0
}
#[cfg(tidegate_loom)]
pub(crate) fn hint(_shares: usize) -> u32 {
    0
}

#[cfg(not(tidegate_loom))]
mod owned {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::{OWNED, SHARED};

    /// A bit for each owned stripe that is taken.
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    /// Spreads the others over the shared stripes.
    static NEXT: AtomicUsize = AtomicUsize::new(0);

    const NONE_YET: usize = usize::MAX;

    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(NONE_YET) };
        static HOLD: Held = const { Held };
        /// The last number of shares, and where among so many this thread looks first.
        static HINT: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }

    /// Gives the stripe back when its thread ends.
    struct Held;

    impl Drop for Held {
        fn drop(&mut self) {
            let mine = MINE.get();
            // Whatever this thread still counts, in destructors after this one, it
            // counts among the others.
            MINE.set(OWNED);
            // STRIPE, Release: the next owner goes on from the counts as they are.
            TAKEN.fetch_and(!(1 << mine), Ordering::Release);
        }
    }

    /// This thread's stripe, below [`OWNED`] if nobody else has it; also its hint
    /// for where to look for capacity first.
    #[inline]
    pub(crate) fn stripe() -> usize {
        let mine = MINE.get();
        if mine == NONE_YET { take() } else { mine }
    }

    /// Where among so many shares this thread looks first for tokens of no rank. Not
    /// worked out each time: what is entered waits for it.
    #[inline]
    pub(crate) fn hint(shares: usize) -> u32 {
        let (among, hint) = HINT.get();
        if among as usize == shares {
            hint
        } else {
            spread(shares)
        }
    }

    /// Spreads the stripes over the shares: the fraction of a multiple of the golden ratio.
    #[cold]
    fn spread(shares: usize) -> u32 {
        let spread = (stripe() as u32).wrapping_mul(0x9E37_79B9);
        let hint = ((u64::from(spread) * shares as u64) >> 32) as u32;
        HINT.set((shares as u32, hint));
        hint
    }

    #[cold]
    fn take() -> usize {
        // Relaxed: only the CAS decides.
        let mut taken = TAKEN.load(Ordering::Relaxed);
        let mine = loop {
            let free = taken.trailing_ones() as usize;
            if free >= OWNED {
                // Relaxed: any distribution over the others is right.
                break OWNED + NEXT.fetch_add(1, Ordering::Relaxed) % SHARED;
            }
            // STRIPE, Acquire: the counts as the last owner left them.
            match TAKEN.compare_exchange_weak(
                taken,
                taken | 1 << free,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break free,
                Err(now) => taken = now,
            }
        };
        MINE.set(mine);
        // A thread that is ending already can hold nothing any more.
        if mine < OWNED && HOLD.try_with(|_| ()).is_err() {
            MINE.set(OWNED);
            // STRIPE, Release: as in `Held::drop`; nothing was counted.
            TAKEN.fetch_and(!(1 << mine), Ordering::Release);
            return OWNED;
        }
        mine
    }
}
