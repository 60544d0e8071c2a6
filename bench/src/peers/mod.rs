//! Other ways to build a gate or a part of one, and floors: one a file.

pub mod async_lock_pair;
pub mod floor;
pub mod mutex_gate;
pub mod plain_mutex;
pub mod tokio_pair;
pub mod tower_limit;

pub use async_lock_pair::AsyncLockPair;
pub use floor::Floor;
pub use mutex_gate::MutexGate;
pub use plain_mutex::PlainMutex;
pub use tokio_pair::TokioPair;
pub use tower_limit::TowerLimit;

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many wait for a semaphore, with a limit: what a semaphore lacks to be a
/// bounded queue.
struct Places {
    taken: AtomicUsize,
    limit: usize,
}

/// One of them; dropping it frees it.
struct Place<'g>(&'g Places);

impl Places {
    fn new(limit: u32) -> Self {
        Places {
            taken: AtomicUsize::new(0),
            limit: limit as usize,
        }
    }

    fn take(&self) -> Option<Place<'_>> {
        let more = |taken| (taken < self.limit).then_some(taken + 1);
        // Relaxed: a count; nothing else is read through it.
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Place(self))
    }

    fn taken(&self) -> u64 {
        // Relaxed: as above.
        self.taken.load(Ordering::Relaxed) as u64
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
