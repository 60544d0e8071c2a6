//! The doorbell: who runs the dispatcher's turn, and when it sleeps.
//!
//! | state | meaning | a ring | the turn's end |
//! | --- | --- | --- | --- |
//! | `IDLE` | nothing to do | becomes `WANTED` | |
//! | `WANTED` | somebody should run a turn | stays | |
//! | `RUNNING` | a turn runs, and has seen every ring | becomes `AGAIN` | becomes `IDLE` |
//! | `AGAIN` | a turn runs, and must look again | stays | becomes `RUNNING`, or `WANTED` for the thread |
//!
//! Two turns never overlap: only `IDLE` or `WANTED` become `RUNNING`, by one CAS.

use crate::sync::{AtomicU32, Futex, Ordering};

const IDLE: u32 = 0;
const WANTED: u32 = 1;
const RUNNING: u32 = 2;
const AGAIN: u32 = 3;

/// The turn's word, and the bell that the dispatcher thread sleeps on.
#[derive(Debug)]
pub(crate) struct Turn {
    state: AtomicU32,
    bell: Futex,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Turn {
            state: AtomicU32::new(IDLE),
            bell: Futex::new(0),
        }
    }

    /// Leaves word that there is something to do. True if no turn runs: then the
    /// caller sees to it that one does.
    pub(crate) fn ring(&self) -> bool {
        // Relaxed: only the CAS decides.
        let mut seen = self.state.load(Ordering::Relaxed);
        loop {
            let new = match seen {
                IDLE | WANTED => WANTED,
                _ => AGAIN,
            };
            // TURN, Release: the turn that answers sees what was rung for. It is
            // a write even where nothing changes, so that a turn about to end
            // finds its word moved or comes after.
            match self
                .state
                .compare_exchange_weak(seen, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return new == WANTED,
                Err(now) => seen = now,
            }
        }
    }

    /// Begins a turn if it is wanted and nobody runs one.
    pub(crate) fn try_start(&self) -> bool {
        self.start_from(WANTED)
    }

    /// Begins a turn if nobody runs one, wanted or not.
    pub(crate) fn try_start_unasked(&self) -> bool {
        self.start_from(IDLE) || self.start_from(WANTED)
    }

    fn start_from(&self, state: u32) -> bool {
        // TURN, Acquire: what was rung for, and what the last turn did.
        self.state
            .compare_exchange(state, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Ends the turn; false if it must look again first.
    pub(crate) fn try_end(&self) -> bool {
        // TURN, Release: the next turn sees what this one did.
        if self
            .state
            .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return true;
        }
        // TURN, Acquire: what was rung for meanwhile.
        self.state.swap(RUNNING, Ordering::AcqRel);
        false
    }

    /// Ends the turn and leaves the rest to another.
    pub(crate) fn hand_over(&self) {
        // TURN, Release: as in `try_end`.
        self.state.swap(WANTED, Ordering::AcqRel);
    }

    /// How often the bell was rung: look before looking for work.
    pub(crate) fn bell(&self) -> u32 {
        // BELL, Acquire: the work that was there before the ring is seen.
        self.bell.load(Ordering::Acquire)
    }

    /// Sleeps until the bell was rung since it read `seen`.
    pub(crate) fn sleep(&self, seen: u32) {
        self.bell.wait(seen);
    }

    /// Wakes the dispatcher thread: a turn is wanted.
    pub(crate) fn wake(&self) {
        // BELL, Release: after what is to be done was left in `state`.
        self.bell.fetch_add(1, Ordering::AcqRel);
        self.bell.wake_one();
    }

    /// Whether no turn runs or is wanted.
    pub(crate) fn is_idle(&self) -> bool {
        // TURN, Acquire: what the last turn did is visible to who finds it ended.
        self.state.load(Ordering::Acquire) == IDLE
    }

    /// Whether a turn runs.
    #[cfg(tidegate_stall)]
    pub(crate) fn is_running(&self) -> bool {
        // Relaxed: for tests that look while every thread stands still.
        matches!(self.state.load(Ordering::Relaxed), RUNNING | AGAIN)
    }
}
