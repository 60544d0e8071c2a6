//! How fast requests finish, and so when one that is refused may come again.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::{Counts, Lane};
use tokio::time::{Instant, sleep};

/// How many requests finish in a second at one worker, or out of one queue of a frontend,
/// smoothed.
#[derive(Debug)]
pub(crate) struct Drain {
    done: AtomicU64,
    /// Requests per second, as the bits of an `f64`; not a number until known.
    rate: AtomicU64,
    /// The ranks that share it.
    ranks: AtomicUsize,
}

/// How often the rate is brought up to date.
const INTERVAL: Duration = Duration::from_secs(1);

/// How much the newest second weighs.
const NEWEST: f64 = 0.2;

/// What a client is asked to wait at most, in seconds.
const LONGEST_WAIT: f64 = 60.0;

impl Drain {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        Self {
            done: AtomicU64::new(0),
            rate: AtomicU64::new(f64::NAN.to_bits()),
            ranks: AtomicUsize::new(1),
        }
    }

    /// From now on so many ranks share the rate.
    pub(crate) fn set_ranks(&self, ranks: usize) {
        self.ranks.store(ranks, Ordering::Relaxed);
    }

    /// A request has finished.
    pub(crate) fn done(&self) {
        // Relaxed, as everywhere here: a statistic, nothing is read through it.
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the rate up to date, second by second. A second in which nothing finished and
    /// nothing was there that could have, as `at_work` says, tells nothing of the rate. Runs
    /// until it is dropped; cancel safe.
    pub(crate) async fn keep(&self, at_work: impl Fn() -> bool) {
        let (mut done, mut last) = (self.done.load(Ordering::Relaxed), Instant::now());
        loop {
            sleep(INTERVAL).await;
            let now = Instant::now();
            if at_work() || self.done.load(Ordering::Relaxed) != done {
                done = self.observe(done, now - last);
            }
            last = now;
        }
    }

    /// Brings the rate up to date: called every second or so by one task, if not by
    /// [`keep`](Self::keep).
    /// `before` is what the last call returned, `time` has passed since then.
    pub(crate) fn observe(&self, before: u64, time: Duration) -> u64 {
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

    /// The seconds until so many requests of the whole worker, or of one rank, have
    /// finished, at the rate at which they do; `None` until that is known.
    fn wait(&self, requests: u64, of_worker: bool) -> Option<f64> {
        let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
        let sharing = match of_worker {
            true => 1,
            false => self.ranks.load(Ordering::Relaxed),
        };
        (!rate.is_nan()).then(|| requests as f64 * sharing as f64 / rate)
    }

    /// The seconds, from 1 on, that the request at this position of a lane waits for
    /// its turn; `None` while nobody can tell.
    pub(crate) fn expected_wait(&self, position: u64, lane: Lane) -> Option<u64> {
        let wait = self.wait(position, lane == Lane::Unspecified)?;
        // Far beyond what anybody waits, and well within what converts exactly.
        wait.is_finite().then(|| wait.ceil().clamp(1.0, 1e9) as u64)
    }

    /// The time, in whole seconds from 1 to 60, after which a refused request
    /// has a chance: what is ahead of it in the worker or at its rank, at the rate at
    /// which requests finish there.
    /// `jitter`, from 0 to 1, spreads that over up to half as much again, so
    /// that refused clients do not all come back at once.
    pub(crate) fn retry_after(&self, ahead: Counts, of_worker: bool, jitter: f64) -> u64 {
        // Without a rate there is nothing to go by but patience.
        let wait = self.wait(ahead.queued.saturating_add(1), of_worker);
        spread(wait.unwrap_or(1.0), jitter)
    }

    /// The same where so many are held ahead of it; `None` until the rate is known.
    pub(crate) fn retry_after_held(&self, ahead: u64, jitter: f64) -> Option<u64> {
        let wait = self.wait(ahead.saturating_add(1), true)?;
        Some(spread(wait, jitter))
    }
}

fn spread(wait: f64, jitter: f64) -> u64 {
    let spread = wait * (1.0 + jitter / 2.0);
    // The bounds make the conversion exact, at a rate of 0 too.
    spread.ceil().clamp(1.0, LONGEST_WAIT) as u64
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
        assert_eq!(drain.retry_after(queued(9), true, 0.0), 1);
        drain.done.store(20, Ordering::Relaxed);
        assert_eq!(drain.observe(0, Duration::from_secs(10)), 20);
        // 2 a second.
        assert_eq!(drain.retry_after(queued(19), true, 0.0), 10);
        assert_eq!(drain.retry_after(queued(19), true, 1.0), 15);
        assert_eq!(drain.retry_after(queued(0), true, 0.0), 1);
        assert_eq!(drain.retry_after(queued(u64::MAX), true, 1.0), 60);
    }

    #[test]
    fn a_rank_has_its_share_of_the_rate_and_a_queued_request_the_same_estimate() {
        let drain = Drain::new();
        assert_eq!(drain.expected_wait(1, Lane::Unspecified), None);
        drain.done.store(20, Ordering::Relaxed);
        drain.observe(0, Duration::from_secs(10));
        drain.set_ranks(4);
        assert_eq!(drain.retry_after(queued(9), false, 0.0), 20);
        assert_eq!(drain.retry_after(queued(9), true, 0.0), 5);
        assert_eq!(drain.expected_wait(10, Lane::Rank(3)), Some(20));
        assert_eq!(drain.expected_wait(10, Lane::Unspecified), Some(5));
        assert_eq!(drain.expected_wait(0, Lane::Unspecified), Some(1));
    }

    #[test]
    fn the_rate_follows_slowly_and_a_standstill_asks_for_patience() {
        let drain = Drain::new();
        drain.done.store(10, Ordering::Relaxed);
        let mut done = drain.observe(0, Duration::from_secs(1));
        done = drain.observe(done, Duration::from_secs(1));
        assert_eq!(drain.retry_after(queued(15), true, 0.0), 2);
        for _ in 0..10_000 {
            done = drain.observe(done, Duration::from_secs(1));
        }
        assert_eq!(drain.retry_after(queued(0), true, 0.0), 60);
        assert_eq!(drain.observe(done, Duration::ZERO), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_second_says_nothing_of_the_rate_and_one_at_work_does() {
        let (drain, inside) = (Drain::new(), AtomicUsize::new(1));
        // Ends between two looks of the keeper, so that each has its second.
        let ten_seconds_later = async || {
            sleep(10 * INTERVAL).await;
            drain.retry_after_held(9, 0.0)
        };
        let script = async {
            sleep(INTERVAL / 2).await;
            assert_eq!(ten_seconds_later().await, None, "nothing has finished");
            (0..10).for_each(|_| drain.done());
            let slow = ten_seconds_later().await;
            assert!(slow > Some(5), "10 in one second, then none: {slow:?}");
            inside.store(0, Ordering::Relaxed);
            assert_eq!(ten_seconds_later().await, slow);
        };
        tokio::select! {
            () = drain.keep(|| inside.load(Ordering::Relaxed) > 0) => {}
            () = script => {}
        }
    }

    #[test]
    fn before_the_first_request_is_done_nothing_is_known() {
        let drain = Drain::new();
        assert_eq!(drain.retry_after_held(100, 0.0), None);
        assert_eq!(drain.observe(0, Duration::from_secs(1)), 0);
        assert_eq!(drain.retry_after(queued(100), true, 0.0), 1);
    }
}

#[cfg(test)]
#[path = "storm_tests.rs"]
mod storm;
