//! The drain model: how long a request will be held, from how many are before it.
//!
//! Drain time is the time from a request's arrival to its entry into the engine;
//! concurrency is the number of requests running or held ahead of it when it
//! arrived. Once the engine is full, each of them has to end before it can enter,
//! so that drain time grows linearly with their number:
//!
//! ```text
//! drain = max(0, a + b × concurrency)       milliseconds; b = 1 / completion rate
//! ```
//!
//! with `a` and `b` the recursive least squares of a [`Line`] over about 50
//! observations. (A log-normal fit is the other common description. It describes
//! the *spread* of latencies, for which there are [`buckets`](crate::buckets);
//! it does not answer how much longer one more request makes the queue.)
//!
//! # Assumptions
//! Little's law with a steady completion rate over the memory of the fit; the
//! requests ahead are of average size. Requests that entered without being held
//! are not observed: below the knee the answer is known to be 0, and their zeros
//! would only bend the line. A request that gave up after being held proves that
//! its drain time was longer than that, and counts only if the model says less.
//!
//! An [`Ema`] of the same drain times is kept to compare with. Each model's error
//! is the average of `|predicted - held|`, in milliseconds, judged before the
//! observation is learned from.

use crate::ema::Ema;
use crate::line::Line;

/// Weight that an observation keeps from one to the next: some 50 are remembered.
const MEMORY: f64 = 0.98;

/// The drain model of one class.
#[derive(Clone, Debug)]
pub struct Drain {
    line: Line,
    average: Ema,
    line_error: Ema,
    average_error: Ema,
}

/// How far predictions were off lately, in milliseconds; `None` before the second
/// observation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrainError {
    /// The regression's, which decides.
    pub regression_ms: Option<f64>,
    /// The moving average's, to compare.
    pub average_ms: Option<f64>,
}

impl Default for Drain {
    fn default() -> Self {
        Drain {
            line: Line::new(MEMORY),
            average: Ema::new(1.0 - MEMORY),
            line_error: Ema::new(1.0 - MEMORY),
            average_error: Ema::new(1.0 - MEMORY),
        }
    }
}

impl Drain {
    /// A request that arrived behind `concurrency` others was held for `held_ms`
    /// and then entered.
    pub fn entered(&mut self, concurrency: u64, held_ms: f64) {
        if let Some(predicted) = self.line.predict(concurrency as f64) {
            self.line_error.observe((predicted - held_ms).abs());
        }
        if let Some(average) = self.average.get() {
            self.average_error.observe((average - held_ms).abs());
        }
        self.line.observe(concurrency as f64, held_ms);
        self.average.observe(held_ms);
    }

    /// A request that arrived behind `concurrency` others left or was refused
    /// after being held for `held_ms`: its drain time was longer.
    pub fn gave_up(&mut self, concurrency: u64, held_ms: f64) {
        if self.predict(concurrency) < held_ms {
            self.line.observe(concurrency as f64, held_ms);
            self.average.observe(held_ms);
        }
    }

    /// How long a request behind this many others will be held, in milliseconds.
    /// Never falls as their number grows; 0 before the first observation.
    #[must_use]
    pub fn predict(&self, concurrency: u64) -> f64 {
        self.line.predict(concurrency as f64).unwrap_or(0.0)
    }

    /// How far predictions were off.
    #[must_use]
    pub fn error(&self) -> DrainError {
        DrainError {
            regression_ms: self.line_error.get(),
            average_ms: self.average_error.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 64 run, and one ends every 25 ms.
    fn held_ms(concurrency: u64) -> f64 {
        25.0 * (concurrency as f64 - 64.0)
    }

    #[test]
    fn it_finds_the_completion_rate_and_the_knee() {
        let mut drain = Drain::default();
        (0..200).for_each(|i| drain.entered(65 + i % 30, held_ms(65 + i % 30)));
        for concurrency in [70, 100, 200] {
            let off = drain.predict(concurrency) - held_ms(concurrency);
            assert!(off.abs() < 1.0, "{concurrency}: {off}");
        }
        assert_eq!(drain.predict(10), 0.0);
    }

    #[test]
    fn the_line_follows_bursts_that_the_average_does_not() {
        let mut drain = Drain::default();
        for burst in 0..20 {
            let deep = 65 + 40 * (burst % 2);
            (0..20).for_each(|i| drain.entered(deep + i, held_ms(deep + i)));
        }
        let DrainError {
            regression_ms,
            average_ms,
        } = drain.error();
        assert!(regression_ms.unwrap() < 0.1 * average_ms.unwrap());
    }

    #[test]
    fn giving_up_raises_a_prediction_and_never_lowers_one() {
        let mut drain = Drain::default();
        drain.gave_up(80, 150.0);
        assert!((drain.predict(80) - 150.0).abs() < 1e-9);
        drain.gave_up(80, 10.0);
        assert!((drain.predict(80) - 150.0).abs() < 1e-9);
        assert_eq!(drain.error().regression_ms, None);
    }

    #[test]
    fn nothing_known_predicts_nothing() {
        assert_eq!(Drain::default().predict(1_000), 0.0);
    }

    proptest! {
        #[test]
        fn more_ahead_is_never_sooner(
            seen in prop::collection::vec((0_u64..500, 0.0..1e5_f64, any::<bool>()), 0..80),
            a in 0_u64..10_000,
            b in 0_u64..10_000,
        ) {
            let mut drain = Drain::default();
            for (concurrency, held, entered) in seen {
                match entered {
                    true => drain.entered(concurrency, held),
                    false => drain.gave_up(concurrency, held),
                }
            }
            let (near, far) = (drain.predict(a.min(b)), drain.predict(a.max(b)));
            prop_assert!(0.0 <= near && near <= far * (1.0 + 1e-9) + 1e-9, "{near} {far}");
        }
    }
}
