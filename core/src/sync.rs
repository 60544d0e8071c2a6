//! The one place that names std's or loom's synchronisation primitives.
//!
//! Everything else in the crate imports from here, so that building with
//! `--cfg tidegate_loom` puts the real code under the model checker, and
//! `--cfg tidegate_stall` puts a hook before each of its atomic steps.

#[cfg(not(tidegate_loom))]
mod imp {
    #[cfg(tidegate_stall)]
    pub(crate) use crate::stall::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence, wait, wake_one,
    };
    #[cfg(not(tidegate_stall))]
    pub(crate) use atomic_wait::{wait, wake_one};
    #[cfg(not(tidegate_stall))]
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Arc, Mutex};
    pub(crate) use std::thread;

    /// loom's cell with std's inside.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(tidegate_loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Arc, Mutex};
    pub(crate) use loom::thread;

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

#[cfg(tidegate_stall)]
pub(crate) use imp::AtomicU64 as Tally;
/// What only counts. No edge goes through it, so the model checker does not see
/// it either, and explores no orders that make no difference.
#[cfg(not(tidegate_stall))]
pub(crate) use std::sync::atomic::AtomicU64 as Tally;
