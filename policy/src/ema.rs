//! An exponential moving average.
//!
//! ```text
//! mean ← mean + share × (value − mean)        the first value is the first mean
//! ```
//!
//! `share` is the weight of the newest value, above 0 and at most 1.

/// The average of recent values.
#[derive(Clone, Copy, Debug)]
pub struct Ema {
    share: f64,
    mean: Option<f64>,
}

impl Ema {
    /// No values yet. A share out of range counts as the nearest in
    /// range, one that is not a number as 1.
    #[must_use]
    pub fn new(share: f64) -> Self {
        let share = if share.is_nan() { 1.0 } else { share };
        Ema {
            share: share.clamp(f64::MIN_POSITIVE, 1.0),
            mean: None,
        }
    }

    /// Adds a value; one that is not finite is left out.
    pub fn observe(&mut self, value: f64) {
        if value.is_finite() {
            let mean = self.mean.unwrap_or(value);
            // In two products: the difference of two finite values may not be finite.
            self.mean = Some((1.0 - self.share) * mean + self.share * value);
        }
    }

    /// Moves the average nearly to where a value is: what was before weighs `kept`.
    pub fn forget(&mut self, kept: f64, value: f64) {
        if let Some(mean) = self.mean.filter(|_| value.is_finite()) {
            self.mean = Some(kept * mean + (1.0 - kept) * value);
        }
    }

    /// The average; `None` before the first value.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_moves_by_its_share() {
        let mut ema = Ema::new(0.25);
        assert_eq!(ema.get(), None);
        ema.observe(8.0);
        assert_eq!(ema.get(), Some(8.0));
        ema.observe(f64::NAN);
        ema.observe(0.0);
        assert_eq!(ema.get(), Some(6.0));
    }

    proptest! {
        #[test]
        fn it_stays_between_the_least_and_the_most(
            share in prop::num::f64::ANY,
            values in prop::collection::vec(-1e9..1e9_f64, 1..60),
        ) {
            let mut ema = Ema::new(share);
            values.iter().for_each(|&value| ema.observe(value));
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = ema.get().unwrap();
            prop_assert!(least - 1e-3 <= mean && mean <= most + 1e-3, "{mean}");
        }
    }
}
