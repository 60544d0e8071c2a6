//! Rolling statistics of latencies: quantiles over the last one to two periods.
//!
//! Two histograms (the `hdrhistogram` library's, two significant digits, so that
//! a quantile is within 1 %): one fills, the other is the period before. When a
//! period ends the full one becomes the older and the older is dropped. Nothing
//! older than two periods counts, and memory is bounded whatever the rate.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::turns::Turns;

/// The longest latency that is told apart: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// Latencies of the last one to two periods.
#[derive(Clone, Debug)]
pub struct Rolling {
    turns: Turns,
    now: Option<Histogram<u32>>,
    before: Option<Histogram<u32>>,
}

impl Rolling {
    /// Empty; the first period starts at `now`. A period of zero counts as 1 ms.
    #[must_use]
    pub fn new(period: Duration, now: Duration) -> Self {
        Rolling {
            turns: Turns::new(period.max(Duration::from_millis(1)), now),
            now: None,
            before: None,
        }
    }

    /// Adds a latency in milliseconds, below an hour; a longer one counts as an
    /// hour, a negative one as 0, and one that is not a number is left out.
    pub fn record(&mut self, ms: f64) {
        if ms.is_nan() {
            return;
        }
        if self.now.is_none() {
            self.now = empty();
        }
        if let Some(histogram) = &mut self.now {
            // The cast saturates, and the bounds are the histogram's own.
            histogram.saturating_record(((ms * 1e3) as u64).clamp(1, LONGEST_US));
        }
    }

    /// Moves on to the next period if this one has ended; `true` if so. A clock
    /// that jumped back starts the period anew.
    pub fn turn(&mut self, now: Duration) -> bool {
        let over = self.turns.over(now);
        if over > 0 {
            self.before = self.now.take().filter(|_| over == 1);
        }
        over > 0
    }

    /// How many latencies there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.both().map(|histogram| histogram.len()).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Quantiles in milliseconds, each from 0 to 1; `None` when it is empty.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> Option<[f64; N]> {
        let mut both = self.both();
        let mut all = both.next()?.clone();
        for other in both {
            all.add(other).ok()?;
        }
        (!all.is_empty()).then(|| quantiles.map(|q| all.value_at_quantile(q) as f64 / 1e3))
    }

    fn both(&self) -> impl Iterator<Item = &Histogram<u32>> {
        self.now.iter().chain(&self.before)
    }
}

/// These bounds are valid: the error that the library could give never comes.
fn empty() -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(1, LONGEST_US, 2).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn quantiles_are_within_a_hundredth() {
        let mut rolling = Rolling::new(at(300), at(0));
        (1..=1000).for_each(|ms| rolling.record(f64::from(ms)));
        let [p50, p99, p999] = rolling.quantiles([0.5, 0.99, 0.999]).unwrap();
        for (found, exact) in [(p50, 500.0), (p99, 990.0), (p999, 999.0)] {
            assert!((found / exact - 1.0_f64).abs() < 0.01, "{found} {exact}");
        }
    }

    #[test]
    fn what_is_older_than_two_periods_is_forgotten() {
        let mut rolling = Rolling::new(at(10), at(0));
        rolling.record(1.0);
        assert!(!rolling.turn(at(9)));
        assert!(rolling.turn(at(10)));
        rolling.record(9.0);
        assert_eq!(rolling.len(), 2);
        assert!(rolling.turn(at(20)));
        assert_eq!(rolling.len(), 1);
        assert!(rolling.turn(at(60)), "a long pause ends both periods");
        assert_eq!((rolling.is_empty(), rolling.quantiles([0.5])), (true, None));
    }

    #[test]
    fn a_clock_that_jumps_back_starts_anew() {
        let mut rolling = Rolling::new(at(10), at(1000));
        assert!(!rolling.turn(at(3)));
        assert!(!rolling.turn(at(12)));
        assert!(rolling.turn(at(13)));
    }

    proptest! {
        #[test]
        fn any_latency_is_taken_and_quantiles_are_in_order(
            latencies in prop::collection::vec(prop::num::f64::ANY, 1..100),
        ) {
            let mut rolling = Rolling::new(at(10), at(0));
            latencies.iter().for_each(|&ms| rolling.record(ms));
            let numbers = latencies.iter().filter(|ms| !ms.is_nan()).count();
            prop_assert_eq!(rolling.len(), numbers as u64);
            if let Some([p50, p99]) = rolling.quantiles([0.5, 0.99]) {
                prop_assert!(0.0 < p50 && p50 <= p99 && p99 <= 3.7e6);
            }
        }
    }
}
