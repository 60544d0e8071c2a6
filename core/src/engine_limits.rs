//! The engine limits in force, and how often they moved, in one word:
//! `moves (32 bits) | moving | running (15) | unused | waiting (15)`.

use crate::sync::{AtomicU64, Ordering};

const LIMIT: u64 = 0x7fff;
const RUNNING: u32 = 16;
const MOVING: u64 = 1 << 31;
const MOVES: u32 = 32;

/// The limits per rank. The turn's alone to change.
#[derive(Debug)]
pub(crate) struct EngineLimits(AtomicU64);

/// One reading, to tell whether the limits moved since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// Whether the shares may not have followed the limits yet: some may owe
    /// tokens.
    pub(crate) fn moving(self) -> bool {
        self.0 & MOVING != 0
    }
}

impl EngineLimits {
    pub(crate) fn new(running: u32, waiting: u32) -> Self {
        EngineLimits(AtomicU64::new(
            u64::from(running) << RUNNING | u64::from(waiting),
        ))
    }

    /// Running and waiting.
    pub(crate) fn read(&self) -> (u32, u32) {
        let Epoch(word) = self.epoch();
        ((word >> RUNNING & LIMIT) as u32, (word & LIMIT) as u32)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        // Acquire: EPOCH. A taker whose second look finds the same epoch took
        // its tokens before the next change of limits counted them; one that
        // finds nothing moving sees every debt paid.
        Epoch(self.0.load(Ordering::Acquire))
    }

    /// The limits begin to move.
    pub(crate) fn set(&self, running: u32, waiting: u32) {
        let moves = (self.epoch().0 >> MOVES) + 1;
        let limits = u64::from(running) << RUNNING | u64::from(waiting);
        // AcqRel: EPOCH, stays before the change of the shares.
        self.0
            .swap(moves << MOVES | MOVING | limits, Ordering::AcqRel);
    }

    /// No share owes anything any more.
    pub(crate) fn moved(&self) {
        // Release: EPOCH, after the last debt was paid.
        self.0.fetch_and(!MOVING, Ordering::AcqRel);
    }
}
