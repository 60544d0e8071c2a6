//! What an admitted request holds, and how fast such holds come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Counts, OwnedPermit};

use crate::policy::Inside;
use crate::proxy::relay::Hold;

/// A request's permit. Dropping it gives the permit back and counts it as done.
#[derive(Debug)]
pub struct Slot {
    permit: OwnedPermit,
    /// What it is to the policy. Below the permit: whoever hears that it ended finds
    /// the room that it left.
    inside: Option<Inside>,
    /// Events that have passed: about as many tokens.
    events: u64,
    drain: Arc<Drain>,
}

impl Slot {
    /// Holds `permit` until this is dropped, which `drain` then hears of.
    pub(super) fn new(permit: OwnedPermit, drain: Arc<Drain>) -> Self {
        Self {
            permit,
            inside: None,
            events: 0,
            drain,
        }
    }

    /// The policy follows it.
    pub(super) fn followed(mut self, inside: Inside) -> Self {
        self.inside = Some(inside);
        self
    }

    /// The engine answered with an error: there is nothing to learn from it.
    pub(super) fn failed(&mut self) {
        self.inside = None;
    }
}

impl Hold for Slot {
    fn first_token(&mut self) {
        self.permit.first_token();
        if let Some(inside) = &mut self.inside {
            inside.first_token();
        }
    }

    fn passed(&mut self, piece: &[u8]) {
        if self.inside.is_some() {
            self.events += events(piece);
        }
    }

    fn ended(&mut self, whole: bool) {
        if let Some(inside) = self.inside.take()
            && whole
        {
            inside.ended((self.events > 0).then_some(self.events));
        }
    }
}

/// Lines that hold an event's data, but for one that is split between pieces.
fn events(piece: &[u8]) -> u64 {
    let lines = piece.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"data:")).count() as u64
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Relaxed, as everywhere here: a statistic, nothing is read through it.
        self.drain.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many requests finish in a second, smoothed.
#[derive(Debug)]
pub struct Drain {
    done: AtomicU64,
    /// Requests per second, as the bits of an `f64`; not a number until known.
    rate: AtomicU64,
}

/// How much the newest second weighs.
const NEWEST: f64 = 0.2;

/// What a client is asked to wait at most, in seconds.
const LONGEST_WAIT: f64 = 60.0;

impl Drain {
    /// Nothing seen yet.
    pub(super) fn new() -> Self {
        Self {
            done: AtomicU64::new(0),
            rate: AtomicU64::new(f64::NAN.to_bits()),
        }
    }

    /// Brings the rate up to date: called every second or so by one task.
    /// `before` is what the last call returned, `time` has passed since then.
    pub(super) fn observe(&self, before: u64, time: Duration) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        let newest = (done - before) as f64 / time.as_secs_f64().max(1e-3);
        let older = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let rate = if !older.is_nan() {
            NEWEST.mul_add(newest - older, older)
        } else if done > 0 {
            newest
        } else {
            return done;
        };
        self.rate.store(rate.to_bits(), Ordering::Relaxed);
        done
    }

    /// The time, in whole seconds from 1 to 60, after which a refused request
    /// has a chance: what is ahead of it, at the rate at which requests finish.
    /// `jitter`, from 0 to 1, spreads that over up to half as much again, so
    /// that refused clients do not all come back at once.
    pub(super) fn retry_after(&self, ahead: Counts, jitter: f64) -> u64 {
        let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let ahead = ahead.queued as f64 + 1.0;
        // Without a rate there is nothing to go by but patience.
        let wait = if rate.is_nan() { 1.0 } else { ahead / rate };
        let spread = wait * (1.0 + jitter / 2.0);
        // The bounds make the conversion exact, at a rate of 0 too.
        spread.ceil().clamp(1.0, LONGEST_WAIT) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(queued: u64) -> Counts {
        Counts {
            queued,
            ..Counts::default()
        }
    }

    #[test]
    fn the_wait_is_what_is_ahead_at_the_rate_at_which_requests_finish() {
        let drain = Drain::new();
        assert_eq!(drain.retry_after(queued(9), 0.0), 1);
        drain.done.store(20, Ordering::Relaxed);
        assert_eq!(drain.observe(0, Duration::from_secs(10)), 20);
        // 2 a second.
        assert_eq!(drain.retry_after(queued(19), 0.0), 10);
        assert_eq!(drain.retry_after(queued(19), 1.0), 15);
        assert_eq!(drain.retry_after(queued(0), 0.0), 1);
        assert_eq!(drain.retry_after(queued(u64::MAX), 1.0), 60);
    }

    #[test]
    fn the_rate_follows_slowly_and_a_standstill_asks_for_patience() {
        let drain = Drain::new();
        drain.done.store(10, Ordering::Relaxed);
        let mut done = drain.observe(0, Duration::from_secs(1));
        done = drain.observe(done, Duration::from_secs(1));
        assert_eq!(drain.retry_after(queued(15), 0.0), 2);
        for _ in 0..10_000 {
            done = drain.observe(done, Duration::from_secs(1));
        }
        assert_eq!(drain.retry_after(queued(0), 0.0), 60);
        assert_eq!(drain.observe(done, Duration::ZERO), 10);
    }

    #[test]
    fn before_the_first_request_is_done_nothing_is_known() {
        let drain = Drain::new();
        assert_eq!(drain.observe(0, Duration::from_secs(1)), 0);
        assert_eq!(drain.retry_after(queued(100), 0.0), 1);
    }
}

#[cfg(test)]
#[path = "storm_tests.rs"]
mod storm;
