//! Clients that come again when they are refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tidegate::Counts;

use crate::server::drain::Drain;

/// How clients take a refusal.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// How long after its first arrival one comes again at most.
    pub patience: Duration,
    /// When it does.
    pub pause: Pause,
}

/// When a client comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// After this time.
    Fixed(Duration),
    /// When the worker says, by the `Retry-After` that it sends.
    RetryAfter,
}

/// Those that will come again.
pub(super) struct Returning {
    retries: Retries,
    due: BinaryHeap<Reverse<(Duration, u64)>>,
    /// The worker's estimate, brought up to date once a second.
    drain: Drain,
    observed: (Duration, u64),
    jitter: StdRng,
}

impl Returning {
    pub(super) fn new(retries: Retries) -> Self {
        Returning {
            retries,
            due: BinaryHeap::new(),
            drain: Drain::new(),
            observed: (Duration::ZERO, 0),
            jitter: StdRng::seed_from_u64(0x5eed),
        }
    }

    /// An answer ended.
    pub(super) fn done(&self) {
        self.drain.done();
    }

    /// The time goes on.
    pub(super) fn observe(&mut self, now: Duration) {
        let (then, done) = self.observed;
        let passed = now.saturating_sub(then);
        if passed >= Duration::from_secs(1) {
            self.observed = (now, self.drain.observe(done, passed));
        }
    }

    /// A request that first came at `first` was refused while so many were held. Says
    /// whether its client comes again.
    pub(super) fn refused(&mut self, now: Duration, id: u64, first: Duration, held: u64) -> bool {
        let pause = match self.retries.pause {
            Pause::Fixed(time) => time,
            Pause::RetryAfter => {
                let ahead = Counts {
                    queued: held,
                    ..Counts::default()
                };
                let seconds = self.drain.retry_after(ahead, true, self.jitter.random());
                Duration::from_secs(seconds)
            }
        };
        let again = now.saturating_add(pause);
        let comes = again.saturating_sub(first) <= self.retries.patience;
        if comes {
            self.due.push(Reverse((again, id)));
        }
        comes
    }

    /// When the next one comes.
    pub(super) fn next(&self) -> Option<Duration> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Who comes now.
    pub(super) fn comes(&mut self) -> Option<u64> {
        self.due.pop().map(|Reverse((_, id))| id)
    }
}
