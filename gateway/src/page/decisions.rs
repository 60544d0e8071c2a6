//! The last decisions, kept while somebody looks.
//!
//! While nobody does, noting one costs a look at a flag that hardly ever changes;
//! a lock is taken only while the page is open somewhere.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// As many are kept.
pub const KEPT: usize = 64;

/// What was decided about one request. No word of a client's is in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// How long ago, in milliseconds.
    pub ago_ms: u64,
    /// `admitted`, `queued`, `refused`, `cancelled`, `answered` or `failed`.
    pub outcome: &'static str,
    /// Whose it is: a rank, a class, a worker.
    pub who: String,
    /// Why.
    pub reason: String,
    /// Milliseconds that it had waited by then, if it had.
    pub waited_ms: Option<u64>,
}

/// The last of them.
#[derive(Debug, Default)]
pub struct Decisions {
    watched: AtomicBool,
    ring: Mutex<VecDeque<(Instant, Decision)>>,
}

impl Decisions {
    /// Notes one, if somebody looks; else `decision` is not called.
    pub(crate) fn note(
        &self,
        outcome: &'static str,
        waited: Option<Duration>,
        decision: impl FnOnce() -> (String, String),
    ) {
        // Relaxed: one more or less at the edge does not matter.
        if !self.watched.load(Ordering::Relaxed) {
            return;
        }
        let (who, reason) = decision();
        let decision = Decision {
            ago_ms: 0,
            outcome,
            who,
            reason,
            waited_ms: waited.map(millis),
        };
        let mut ring = self.ring();
        // It was switched off meanwhile.
        if !self.watched.load(Ordering::Relaxed) {
            return;
        }
        if ring.len() == KEPT {
            ring.pop_back();
        }
        ring.push_front((Instant::now(), decision));
    }

    /// Somebody looks from now on, or nobody does any more: then all are forgotten.
    pub fn watch(&self, watched: bool) {
        let mut ring = self.ring();
        self.watched.store(watched, Ordering::Relaxed);
        if !watched {
            *ring = VecDeque::new();
        }
    }

    /// The last ones, newest first.
    #[must_use]
    pub fn last(&self) -> Vec<Decision> {
        let ring = self.ring();
        let shown = |(at, decision): &(Instant, Decision)| Decision {
            ago_ms: millis(at.elapsed()),
            ..decision.clone()
        };
        ring.iter().map(shown).collect()
    }

    fn ring(&self) -> MutexGuard<'_, VecDeque<(Instant, Decision)>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_or_even_made_while_nobody_looks() {
        let decisions = Decisions::default();
        decisions.note("admitted", None, || unreachable!("nobody looks"));
        decisions.watch(true);
        decisions.note("queued", None, || ("rank 4".into(), "no room".into()));
        assert_eq!(decisions.last().len(), 1);
        decisions.watch(false);
        assert_eq!(decisions.last(), []);
        assert_eq!(decisions.ring().capacity(), 0);
    }

    #[test]
    fn the_newest_are_kept_and_come_first() {
        let decisions = Decisions::default();
        decisions.watch(true);
        for number in 0..KEPT * 3 {
            let waited = Some(Duration::from_millis(7));
            decisions.note("refused", waited, || (number.to_string(), String::new()));
        }
        let last = decisions.last();
        assert_eq!(last.len(), KEPT);
        assert_eq!(last[0].who, (KEPT * 3 - 1).to_string());
        assert_eq!(last[KEPT - 1].who, (KEPT * 2).to_string());
        assert_eq!(last[0].waited_ms, Some(7));
    }
}
