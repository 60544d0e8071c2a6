//! Gates whose last handle has gone while owned permits or tickets are out.
//!
//! Who gives a lease back tells nobody: that would be one more line to write for each.
//! So somebody has to look, and that is one thread for all gates, which lives while
//! there are such gates.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::shared::Shared;

/// How often it looks: a gate is freed so much later than its last permit at most.
const EVERY: Duration = Duration::from_millis(50);

static ORPHANS: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// Keeps a gate that has no handle until it has no lease either.
pub(crate) fn adopt(shared: Arc<Shared>) {
    let first = with_orphans(|orphans| {
        orphans.push(shared);
        orphans.len() == 1
    });
    if first {
        let named = thread::Builder::new().name("tidegate-orphans".into());
        // Where no thread starts, nobody looks, and they are never freed.
        if named.spawn(watch).is_err() {
            with_orphans(mem::take).into_iter().for_each(mem::forget);
        }
    }
}

fn watch() {
    loop {
        thread::sleep(EVERY);
        let (over, left) = with_orphans(|orphans| {
            let over: Vec<_> = orphans
                .extract_if(.., |shared| shared.holders.no_lease_is_out())
                .collect();
            (over, orphans.len())
        });
        for shared in over {
            // The dispatcher thread ends.
            shared.turn.wake();
        }
        // Under the lock, it was: who adopts after that starts another thread.
        if left == 0 {
            return;
        }
    }
}

fn with_orphans<R>(f: impl FnOnce(&mut Vec<Arc<Shared>>) -> R) -> R {
    // Nothing panics while it is held.
    f(&mut ORPHANS.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Dispatch, Gate};

    #[test]
    fn a_gate_is_freed_when_its_last_lease_has_gone_and_not_before() {
        for dispatch in [Dispatch::Assisted, Dispatch::Thread, Dispatch::Manual] {
            let gate = Gate::builder().dispatch(dispatch).build().unwrap();
            let seen = Arc::downgrade(&gate.shared);
            let mut permit = gate.try_admit_owned(None).unwrap();
            let other = gate.clone().try_admit_owned(None).unwrap();
            drop(gate);
            drop(other);
            thread::sleep(3 * EVERY);
            assert!(seen.strong_count() > 0, "a permit is out");
            permit.first_token();
            // Elsewhere than it was taken.
            thread::spawn(move || drop(permit)).join().unwrap();
            let asked = Instant::now();
            while seen.strong_count() > 0 {
                assert!(asked.elapsed() < Duration::from_secs(5), "it is not freed");
                thread::sleep(EVERY / 10);
            }
        }
    }

    #[test]
    fn a_gate_without_leases_is_freed_at_once() {
        let gate = Gate::builder().dispatch(Dispatch::Manual).build().unwrap();
        let seen = Arc::downgrade(&gate.shared);
        drop(gate.try_admit_owned(None).unwrap());
        drop(gate);
        assert_eq!(seen.strong_count(), 0);
    }
}
