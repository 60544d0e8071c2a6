//! The published state: one writer, any number of readers, nobody waits.
//!
//! The cell is the `arc-swap` library's. A reader takes the latest [`State`]
//! without a lock and without waiting for the writer or for other readers
//! (wait-free, but for one step in 2⁶² reads); a writer never waits for readers.
//! A decision works on the one snapshot that it took, however long it takes.
//!
//! # When it is old
//! A snapshot older than the limit says nothing about now: the sampler has
//! stopped, or the engine does not answer. Decisions then *fail open*: they are
//! left to the gate alone. That is safe, because the gate's limits still hold,
//! and visible: a [`Reading`] says so and how old the snapshot is.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::state::State;

/// The age at which a snapshot counts as stale unless set otherwise: ten
/// samples missed at the usual interval.
pub const STALE_AFTER: Duration = Duration::from_secs(1);

/// The latest state of one GPU. Clones show the same one.
#[derive(Clone, Debug, Default)]
pub struct Published {
    cell: Arc<ArcSwapOption<State>>,
}

/// What a reader finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Young enough to decide by.
    Fresh(Arc<State>),
    /// Too old: decide nothing by it.
    Stale {
        /// How old it is.
        age: Duration,
    },
    /// Nothing was published yet.
    Missing,
}

impl Published {
    /// Replaces the state that readers find.
    pub fn publish(&self, state: State) {
        self.cell.store(Some(Arc::new(state)));
    }

    /// The latest state, as it looks at `now`. A snapshot from the future, as
    /// after a clock that jumped back, counts as new.
    #[must_use]
    pub fn read(&self, now: Duration, stale_after: Duration) -> Reading {
        match self.cell.load_full() {
            None => Reading::Missing,
            Some(state) => match now.saturating_sub(state.at) {
                age if age > stale_after => Reading::Stale { age },
                _ => Reading::Fresh(state),
            },
        }
    }
}

impl Reading {
    /// The state to decide by; `None` leaves the decision to the gate alone.
    #[must_use]
    pub fn fresh(&self) -> Option<&State> {
        match self {
            Reading::Fresh(state) => Some(state),
            Reading::Stale { .. } | Reading::Missing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::state::{DeviceSample, EngineSample};

    fn state(ms: u64) -> State {
        State {
            at: Duration::from_millis(ms),
            engine: EngineSample {
                running: Some(ms),
                waiting: Some(2 * ms),
                ..EngineSample::default()
            },
            device: DeviceSample::default(),
            memory: None,
            idle_ms: 0.0,
            steps_per_second: None,
        }
    }

    fn read(published: &Published, ms: u64) -> Reading {
        published.read(Duration::from_millis(ms), STALE_AFTER)
    }

    #[test]
    fn old_is_stale_and_nothing_is_missing() {
        let published = Published::default();
        assert_eq!(read(&published, 0), Reading::Missing);
        published.publish(state(1_000));
        assert!(read(&published, 2_000).fresh().is_some());
        let age = Duration::from_millis(1_001);
        assert_eq!(read(&published, 2_001), Reading::Stale { age });
        assert_eq!(read(&published, 2_001).fresh(), None);
        assert!(
            read(&published, 5).fresh().is_some(),
            "the clock jumped back"
        );
        published.publish(state(3_000));
        assert_eq!(read(&published, 3_000).fresh(), Some(&state(3_000)));
    }

    #[test]
    fn readers_never_see_half_a_state() {
        let published = Published::default();
        published.publish(state(0));
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    threads.spawn(|| {
                        let mut last = 0;
                        while !done.load(Ordering::Relaxed) {
                            let reading = read(&published, 0);
                            let seen = reading.fresh().expect("published, and never old");
                            let running = seen.engine.running.expect("written with the state");
                            assert_eq!(seen.engine.waiting, Some(2 * running));
                            assert!(running >= last, "an older state after a newer");
                            last = running;
                        }
                    })
                })
                .collect();
            (1..=20_000).for_each(|ms| published.publish(state(ms)));
            done.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| {
                reader.join().expect("no reader saw half a state");
            });
        });
    }
}
