//! A class's rate limit: a token bucket.
//!
//! The bucket is the `governor` library's generic cell rate algorithm (ATM Forum,
//! Traffic Management Specification 4.0, 1996), given the caller's time instead
//! of a clock's. It holds `burst` requests and refills at `per_second`, so that
//! over any `t` seconds at most `burst + per_second × t` requests pass.
//!
//! Why a bucket at all: a rate alone refuses the harmless bursts that requests
//! come in. Why not the bucket alone: it knows no deadline; that is what
//! [`decision`](crate::decision) adds.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// The largest burst. Together with the slowest rate, one request an hour, it
/// keeps the library's nanoseconds within 64 bits.
pub const MOST_BURST: u32 = 1_000_000;

/// The latest time that is told apart, some 146 years: for the same reason.
const LATEST_NANOS: u64 = u64::MAX / 4;

/// Most requests over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second in the long run: from one an hour to a million.
    pub per_second: f64,
    /// Requests that may come at once after a rest, at most [`MOST_BURST`].
    pub burst: NonZeroU32,
}

/// A clock that shows the time that it was handed last, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Handed(Arc<AtomicU64>);

impl Clock for Handed {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        // Relaxed: only the one caller of `passes` writes and reads it.
        self.0.load(Ordering::Relaxed).into()
    }
}

/// The bucket of one class; full at the start.
#[derive(Debug)]
pub struct Bucket {
    time: Handed,
    limiter: RateLimiter<NotKeyed, InMemoryState, Handed, NoOpMiddleware<Nanos>>,
}

impl Bucket {
    /// A full bucket. A rate out of range counts as the nearest in range.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let seconds = 1.0 / rate.per_second.max(f64::MIN_POSITIVE);
        let longest = Duration::from_secs(3_600);
        let one_per = Duration::try_from_secs_f64(seconds)
            .unwrap_or(longest)
            .clamp(Duration::from_micros(1), longest);
        let most = NonZeroU32::new(MOST_BURST).unwrap_or(NonZeroU32::MIN);
        // One token's period is never zero, which is all that it refuses.
        let quota = Quota::with_period(one_per)
            .unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN))
            .allow_burst(rate.burst.min(most));
        let time = Handed::default();
        Bucket {
            limiter: RateLimiter::direct_with_clock(quota, time.clone()),
            time,
        }
    }

    /// Takes a token if there is one. `now` is the time since any fixed moment;
    /// one that lies before the last counts as the last.
    pub fn passes(&mut self, now: Duration) -> bool {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.time
            .0
            .fetch_max(nanos.min(LATEST_NANOS), Ordering::Relaxed);
        self.limiter.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket(per_second: f64, burst: u32) -> Bucket {
        Bucket::new(Rate {
            per_second,
            burst: NonZeroU32::new(burst).unwrap(),
        })
    }

    #[test]
    fn a_burst_passes_and_the_rest_comes_at_the_rate() {
        let mut bucket = bucket(10.0, 3);
        let passed = |bucket: &mut Bucket, ms| bucket.passes(Duration::from_millis(ms));
        let at_once: Vec<_> = (0..5).map(|_| passed(&mut bucket, 0)).collect();
        assert_eq!(at_once, [true, true, true, false, false]);
        assert!(!passed(&mut bucket, 99));
        assert!(passed(&mut bucket, 100));
        assert!(!passed(&mut bucket, 101));
    }

    #[test]
    fn a_clock_that_jumps_back_gives_nothing_away() {
        let mut bucket = bucket(1.0, 1);
        assert!(bucket.passes(Duration::from_secs(100)));
        assert!(!bucket.passes(Duration::from_secs(1)));
        assert!(!bucket.passes(Duration::from_millis(100_500)));
        assert!(bucket.passes(Duration::from_secs(101)));
    }

    #[test]
    fn rates_out_of_range_are_the_nearest_in_range() {
        for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            for burst in [1, u32::MAX] {
                let mut bucket = bucket(per_second, burst);
                assert!(bucket.passes(Duration::MAX), "{per_second} {burst}");
            }
        }
    }

    proptest! {
        #[test]
        fn never_more_than_burst_and_rate(
            per_second in 0.1_f64..1000.0,
            burst in 1_u32..50,
            steps in prop::collection::vec(0_u64..200, 1..300),
        ) {
            let mut bucket = bucket(per_second, burst);
            let (mut ms, mut passed) = (0, 0);
            for step in steps {
                ms += step;
                passed += u32::from(bucket.passes(Duration::from_millis(ms)));
                let most = f64::from(burst) + per_second * ms as f64 / 1e3;
                prop_assert!(f64::from(passed) <= most + 1e-3, "{passed} of {most}");
            }
        }
    }
}
