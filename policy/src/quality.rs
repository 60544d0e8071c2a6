//! Quality of service of one class: what its clients got.
//!
//! * goodput: answers that kept the class's promise, per second;
//! * attainment: their share of all answers that ended, 0 to 1;
//! * p50, p99 and p99.9 of the time to the first token, in milliseconds.
//!
//! Refused requests are no answers: they are counted where they are decided. Nor
//! are requests that failed or that their client left; callers leave them out.
//! All are over the last one to two periods ([`Rolling`]).

use std::time::Duration;

use crate::class::Slo;
use crate::rolling::Rolling;

/// Follows one class.
#[derive(Clone, Debug)]
pub struct Quality {
    slo: Slo,
    first_token: Rolling,
    since: Duration,
    now: Ended,
    before: Option<(Duration, Ended)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    all: u64,
    kept: u64,
}

/// What a class's clients got lately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attained {
    /// Answers that kept the promise, per second.
    pub goodput: f64,
    /// Their share of all answers; `None` without any.
    pub attainment: Option<f64>,
    /// p50, p99 and p99.9 of the first token's time in milliseconds; `None`
    /// without any.
    pub first_token_ms: Option<[f64; 3]>,
}

impl Quality {
    /// Nothing ended yet; the first period starts at `now`.
    #[must_use]
    pub fn new(slo: Slo, period: Duration, now: Duration) -> Self {
        Quality {
            slo,
            first_token: Rolling::new(period, now),
            since: now,
            now: Ended::default(),
            before: None,
        }
    }

    /// An answer ended, its first token and its end this long after the request
    /// arrived, in milliseconds.
    pub fn ended(&mut self, now: Duration, first_token_ms: f64, end_to_end_ms: f64) {
        self.turn(now);
        self.first_token.record(first_token_ms);
        self.now.all += 1;
        self.now.kept += u64::from(self.slo.kept(first_token_ms, end_to_end_ms));
    }

    /// What was attained over the last one to two periods.
    #[must_use]
    pub fn attained(&mut self, now: Duration) -> Attained {
        self.turn(now);
        let (from, before) = self.before.unwrap_or((self.since, Ended::default()));
        let (all, kept) = (self.now.all + before.all, self.now.kept + before.kept);
        let seconds = now.saturating_sub(from).as_secs_f64();
        Attained {
            goodput: if seconds > 0.0 {
                kept as f64 / seconds
            } else {
                0.0
            },
            attainment: (all > 0).then(|| kept as f64 / all as f64),
            first_token_ms: self.first_token.quantiles([0.5, 0.99, 0.999]),
        }
    }

    fn turn(&mut self, now: Duration) {
        if self.first_token.turn(now) {
            let kept = !self.first_token.is_empty();
            let ended = std::mem::take(&mut self.now);
            self.before = kept.then_some((self.since, ended));
            self.since = now;
        }
    }
}

impl Slo {
    /// Whether an answer with these times, in milliseconds, kept the promise.
    #[must_use]
    pub fn kept(&self, first_token_ms: f64, end_to_end_ms: f64) -> bool {
        first_token_ms <= self.first_token_ms
            && self.end_to_end_ms.is_none_or(|most| end_to_end_ms <= most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLO: Slo = Slo {
        first_token_ms: 500.0,
        end_to_end_ms: Some(5_000.0),
    };

    fn at(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn quality() -> Quality {
        Quality::new(SLO, at(10), at(0))
    }

    #[test]
    fn goodput_counts_what_kept_the_whole_promise() {
        let mut quality = quality();
        quality.ended(at(1), 500.0, 5_000.0);
        quality.ended(at(2), 501.0, 1_000.0);
        quality.ended(at(3), 100.0, 5_001.0);
        quality.ended(at(4), 100.0, 1_000.0);
        let attained = quality.attained(at(8));
        assert_eq!((attained.goodput, attained.attainment), (0.25, Some(0.5)));
        let [p50, p99, _] = attained.first_token_ms.unwrap();
        assert!((p50 / 100.0 - 1.0).abs() < 0.02 && (p99 / 501.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn it_looks_back_one_to_two_periods() {
        let mut quality = quality();
        quality.ended(at(5), 100.0, 1_000.0);
        quality.ended(at(12), 100.0, 1_000.0);
        assert_eq!(quality.attained(at(20)).goodput, 0.1);
        assert_eq!(quality.attained(at(23)).goodput, 1.0 / 11.0);
        let nothing = quality.attained(at(100));
        assert_eq!((nothing.attainment, nothing.first_token_ms), (None, None));
    }

    proptest! {
        #[test]
        fn attainment_is_a_share(
            all in prop::collection::vec((0_u64..100, 0.0..2e3_f64, 0.0..2e4_f64), 1..50),
        ) {
            let mut quality = quality();
            let mut now = 0;
            for (step, first, end) in all {
                now += step;
                quality.ended(at(now), first, end);
                let attained = quality.attained(at(now));
                prop_assert!((0.0..=1.0).contains(&attained.attainment.unwrap()));
                prop_assert!(attained.goodput >= 0.0);
            }
        }
    }
}
