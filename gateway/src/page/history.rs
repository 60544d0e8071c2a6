//! The newest reading, and what it says beside those before it.
//!
//! | what | over |
//! | --- | --- |
//! | rates | the last [`PACE`] |
//! | quantiles, shares | the last [`WINDOW`] |

use std::collections::VecDeque;
use std::time::Duration;

use super::decisions::Decision;
use super::reading::Reading;
use super::snapshot::Snapshot;
use super::span::Span;
use super::{quality, refusals, saturation};

/// What rates are taken over.
pub const PACE: Duration = Duration::from_secs(3);

/// What quantiles and shares are taken over.
pub const WINDOW: Duration = Duration::from_secs(30);

/// Readings of the last while.
#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<(Duration, Reading)>);

impl History {
    /// Takes in the reading of the moment `now`, and tells what is shown then.
    pub fn observe(
        &mut self,
        now: Duration,
        reading: Reading,
        decisions: Vec<Decision>,
    ) -> Snapshot {
        self.0.push_back((now, reading));
        // One that is older stays, so that the window is a full one.
        while self
            .0
            .get(1)
            .is_some_and(|(at, _)| now.saturating_sub(*at) >= WINDOW)
        {
            self.0.pop_front();
        }
        let span = |time| Span::new(self.ago(now, time), self.ago(now, Duration::ZERO));
        let (pace, window) = (span(PACE), span(WINDOW));
        Snapshot {
            version: env!("CARGO_PKG_VERSION"),
            at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            window_seconds: WINDOW.as_secs(),
            gpu: saturation::gpu(window.now),
            concurrency: saturation::concurrency(&pace),
            quality: quality::quality(&pace, &window),
            refusals: refusals::refusals(&pace),
            reading: shown(&window),
            decisions,
        }
    }

    /// The newest reading that is at least so old, or else the oldest.
    fn ago(&self, now: Duration, time: Duration) -> &(Duration, Reading) {
        let old = |(at, _): &&(Duration, Reading)| now.saturating_sub(*at) >= time;
        let found = self.0.iter().rev().find(old);
        found.unwrap_or(&self.0[0])
    }
}

/// The newest reading, with how long each class waited lately.
fn shown(window: &Span) -> Reading {
    let mut now = window.now.clone();
    for queue in now.front.iter_mut().flat_map(|front| &mut front.queues) {
        let before = window.then.front.iter().flat_map(|front| &front.queues);
        let before = before.clone().find(|before| before.model == queue.model);
        for class in &mut queue.classes {
            let before = before.iter().flat_map(|queue| &queue.classes);
            let before = before.clone().find(|before| before.name == class.name);
            let waits = before.map(|before| class.waits.since(&before.waits));
            class.wait = waits.and_then(|waits| waits.quantiles([0.5, 0.99, 0.999]));
        }
    }
    now
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
