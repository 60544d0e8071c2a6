//! The one place that names std's or loom's synchronisation primitives.
//!
//! Everything else in the crate imports from here, so that building with
//! `--cfg tidegate_loom` puts the real code under the model checker.

#[cfg(not(tidegate_loom))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

    /// Blocks while `word` holds `expected`. May return without a wake-up.
    pub(crate) fn wait(word: &AtomicU32, expected: u32) {
        atomic_wait::wait(word, expected);
    }

    /// Wakes one thread that waits on `word`.
    pub(crate) fn wake_one(word: &AtomicU32) {
        atomic_wait::wake_one(word);
    }
}

#[cfg(tidegate_loom)]
mod imp {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    /// loom has no futex: give way to the other threads and look again.
    pub(crate) fn wait(word: &AtomicU32, expected: u32) {
        // Relaxed: only decides whether to look again; the caller's own load
        // carries the edge.
        if word.load(Ordering::Relaxed) == expected {
            loom::thread::yield_now();
        }
    }

    /// The waiter above spins, so nobody needs waking.
    pub(crate) fn wake_one(_word: &AtomicU32) {}
}

pub(crate) use imp::*;
