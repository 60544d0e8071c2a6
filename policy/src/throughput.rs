//! Throughput: how many requests end per second, and how many may so be held.
//!
//! ```text
//! rate  ends while requests were held / the time for which they were
//! cap   10 s × rate, at least 1
//! ```
//!
//! More than the cap are never held: the last of them would wait for more than
//! 10 s, which is more than any class's promise. Only the time counts in which
//! requests are held, since an engine that has little to do ends little: what it
//! could do is seen when more is asked of it. The last 2 to 4 s of that time are
//! looked at. Before there are 2 s nothing is known, and there is no cap.

use std::time::Duration;

/// Drain that is held at most.
pub const MOST_DRAIN: Duration = Duration::from_secs(10);

/// The time over which ends are counted.
pub const PERIOD: Duration = Duration::from_secs(2);

/// Counts ends.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    last: Duration,
    holds: bool,
    now: Counted,
    before: Option<Counted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    time: Duration,
    ends: u64,
}

impl Throughput {
    /// Nothing is held, and nothing has ended.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Throughput {
            last: now,
            holds: false,
            now: Counted::default(),
            before: None,
        }
    }

    /// From now on requests are held, or none.
    pub fn holds(&mut self, now: Duration, holds: bool) {
        if self.holds {
            self.now.time += now.saturating_sub(self.last);
        }
        (self.last, self.holds) = (now, holds);
        if self.now.time >= PERIOD {
            self.before = Some(std::mem::take(&mut self.now));
        }
    }

    /// A request ended, whether it was served or left the engine early.
    pub fn ended(&mut self, now: Duration) {
        self.holds(now, self.holds);
        self.now.ends += u64::from(self.holds);
    }

    /// Ends per second while requests are held; `None` until that is known.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let before = self.before?;
        let ends = before.ends + self.now.ends;
        Some(ends as f64 / (before.time + self.now.time).as_secs_f64())
    }

    /// Most requests to be held; `None` until the rate is known.
    #[must_use]
    pub fn most_held(&self) -> Option<u64> {
        let rate = self.per_second()?;
        Some((rate * MOST_DRAIN.as_secs_f64()).max(1.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn ends_per_second_and_ten_seconds_of_them() {
        let mut throughput = Throughput::new(at(0));
        throughput.holds(at(0), true);
        throughput.ended(at(1_000));
        assert_eq!(throughput.most_held(), None);
        for ms in (1_000..=5_000).step_by(20) {
            throughput.ended(at(ms));
        }
        let rate = throughput.per_second().unwrap();
        assert!((rate - 50.0).abs() < 2.0, "{rate}");
        assert!((480..=520).contains(&throughput.most_held().unwrap()));
    }

    #[test]
    fn an_idle_engine_is_not_a_slow_one() {
        let mut throughput = Throughput::new(at(0));
        throughput.holds(at(0), true);
        (0..100).for_each(|n| throughput.ended(at(20 * n)));
        throughput.holds(at(2_000), false);
        throughput.ended(at(100_000));
        assert_eq!(throughput.per_second(), Some(50.0));
        // One that stands still while requests are held is.
        throughput.holds(at(100_000), true);
        throughput.holds(at(102_000), true);
        throughput.holds(at(104_000), true);
        assert_eq!(throughput.most_held(), Some(1));
    }

    #[test]
    fn a_clock_that_jumps_back_takes_nothing_away() {
        let mut throughput = Throughput::new(at(5_000));
        throughput.holds(at(5_000), true);
        throughput.ended(at(1_000));
        throughput.ended(at(3_000));
        assert_eq!(throughput.per_second(), Some(1.0));
    }
}
