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

    loom::lazy_static! {
        /// loom has no futex. All words share one bucket, as in a kernel's
        /// table: a sleeper may be woken for another word, and looks again.
        static ref BUCKET: (Mutex<()>, loom::sync::Condvar) = Default::default();
    }

    /// Blocks while `word` holds `expected`. May return without a wake-up.
    pub(crate) fn wait(word: &AtomicU32, expected: u32) {
        let bucket = BUCKET.0.lock().unwrap();
        // Relaxed: only decides whether to sleep; the caller's own access
        // carries the edge.
        if word.load(Ordering::Relaxed) == expected {
            drop(BUCKET.1.wait(bucket).unwrap());
        }
    }

    /// Wakes the thread that waits on `word`, and whoever shares its bucket.
    pub(crate) fn wake_one(_word: &AtomicU32) {
        let _bucket = BUCKET.0.lock().unwrap();
        BUCKET.1.notify_all();
    }
}

pub(crate) use imp::*;
