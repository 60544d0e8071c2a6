//! What no gate can be faster than: the bare read-modify-writes of a lifecycle.

use std::future::{Pending, pending};
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::subject::{Arrival, Rules, Subject};

/// One compare-and-swap and two fetch-adds a lifecycle, on the rank's own cache
/// line; without a rank on the first. It limits nothing.
pub struct Floor(Box<[CachePadded<AtomicU64>]>);

/// The line that a lifecycle works on.
pub struct Line<'g>(&'g AtomicU64);

const WAITING: u64 = 1 << 32;

impl Subject for Floor {
    const NAME: &'static str = "floor";
    const RULES: Rules = Rules::NONE;
    type Permit<'g> = Line<'g>;
    type Ticket<'g> = Pending<Line<'g>>;

    fn build(ranks: u32, _r: u32, _w: u32, _q: u32) -> Self {
        Floor((0..ranks.max(1)).map(|_| CachePadded::default()).collect())
    }

    #[inline]
    fn try_admit(&self, rank: Option<u32>) -> Option<Line<'_>> {
        let line = &*self.0[rank.unwrap_or(0) as usize];
        // Relaxed: a guess for the swap, which decides.
        let mut seen = line.load(Ordering::Relaxed);
        while let Err(now) = line.compare_exchange_weak(
            seen,
            seen + WAITING + 1,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            seen = now;
        }
        Some(Line(line))
    }

    fn request(&self, rank: Option<u32>) -> Arrival<Line<'_>, Pending<Line<'_>>> {
        match self.try_admit(rank) {
            Some(permit) => Arrival::Admitted(permit),
            None => Arrival::Queued(pending()),
        }
    }

    #[inline]
    fn first_token(permit: &mut Line<'_>) {
        permit.0.fetch_sub(WAITING, Ordering::AcqRel);
    }

    fn wait<'g>(_ticket: Pending<Line<'g>>) -> Line<'g>
    where
        Self: 'g,
    {
        unreachable!("a floor queues nobody")
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        let words = self.0.iter().map(|line| line.load(Ordering::Acquire));
        let sum: u64 = words.sum();
        Some((sum % WAITING, sum / WAITING, 0))
    }
}

impl Drop for Line<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
