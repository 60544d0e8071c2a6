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

    /// A word to sleep on.
    #[derive(Debug)]
    pub(crate) struct Futex(AtomicU32);

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Futex(AtomicU32::new(value))
        }

        /// Blocks while the word holds `expected`. May return without a wake-up.
        pub(crate) fn wait(&self, expected: u32) {
            wait(&self.0, expected);
        }

        /// Wakes one thread that waits.
        pub(crate) fn wake_one(&self) {
            wake_one(&self.0);
        }
    }

    impl std::ops::Deref for Futex {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.0
        }
    }

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

    /// loom has no futex: a word, and the bucket of its sleepers.
    #[derive(Debug)]
    pub(crate) struct Futex {
        word: AtomicU32,
        bucket: Mutex<()>,
        sleepers: loom::sync::Condvar,
    }

    impl Futex {
        pub(crate) fn new(value: u32) -> Self {
            Futex {
                word: AtomicU32::new(value),
                bucket: Mutex::new(()),
                sleepers: loom::sync::Condvar::new(),
            }
        }

        /// Blocks while the word holds `expected`. May return without a wake-up.
        pub(crate) fn wait(&self, expected: u32) {
            let bucket = self.bucket.lock().unwrap();
            // Relaxed: only decides whether to sleep; the caller's own access
            // carries the edge.
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.sleepers.wait(bucket).unwrap());
            }
        }

        /// Wakes one thread that waits.
        pub(crate) fn wake_one(&self) {
            let _bucket = self.bucket.lock().unwrap();
            self.sleepers.notify_one();
        }
    }

    impl std::ops::Deref for Futex {
        type Target = AtomicU32;

        fn deref(&self) -> &AtomicU32 {
            &self.word
        }
    }
}

pub(crate) use imp::*;

#[cfg(tidegate_stall)]
pub(crate) use crate::stall::AtomicU64 as Tally;
/// What only counts. No edge goes through it, so the model checker does not see
/// it either, and explores no orders that make no difference.
#[cfg(not(tidegate_stall))]
pub(crate) use std::sync::atomic::AtomicU64 as Tally;
