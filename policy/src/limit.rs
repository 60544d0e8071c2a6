//! The limit in force: how many requests may run, of those that the gate allows.
//!
//! ```text
//! limit = max(1, floor(target × R × cold × headroom))
//! ```
//!
//! `R` is the gate's engine request limit, `target` the share of it to use, and
//! the two factors are those of [`cold_start`] and
//! [`headroom`](crate::headroom). The target is below 1 because the tail of the
//! latency grows faster than the load: with utilisation `u` a queue's mean wait
//! goes as `u / (1 - u)` (Kleinrock, *Queueing Systems*, 1975), which is 3 at 75 %
//! and 9 at 90 %.

use crate::cold_start;

/// The share of the gate's limit that is used unless set otherwise.
pub const TARGET: f64 = 0.75;

/// All of the gate's limit.
pub const WHOLE: f64 = 1.0;

/// What the limit is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// The share of the gate's limit to use, 0 to 1.
    pub target: f64,
    /// The cold start's factor, 0 to 1.
    pub cold: f64,
    /// The headroom's factor, 0 to 1.
    pub headroom: f64,
}

impl Factors {
    /// The limit in force: from 1 to `limit`, whatever the factors are.
    #[must_use]
    pub fn limit(&self, limit: u32) -> u32 {
        // 0.75 × 0.6 is a hair below 0.45 in floats: no reason to lose a request.
        let rounded = self.target * self.cold * self.headroom + 1e-12;
        cold_start::scaled(limit, rounded)
    }

    /// The limit in force if the engine were warm: what a cold start alone
    /// stands in the way of.
    #[must_use]
    pub fn warm_limit(&self, limit: u32) -> u32 {
        Factors { cold: 1.0, ..*self }.limit(limit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limit(target: f64, cold: f64, headroom: f64, of: u32) -> u32 {
        let factors = Factors {
            target,
            cold,
            headroom,
        };
        factors.limit(of)
    }

    #[test]
    fn the_product_rounded_down_and_at_least_one() {
        assert_eq!(limit(TARGET, 1.0, 1.0, 256), 192);
        assert_eq!(limit(TARGET, 0.6, 1.0, 256), 115);
        assert_eq!(limit(TARGET, 0.6, 0.5, 256), 57);
        assert_eq!(limit(TARGET, 1.0, 0.0, 256), 1);
        assert_eq!(limit(TARGET, 1.0, 1.0, 1), 1);
        assert_eq!(limit(f64::NAN, 1.0, 1.0, 256), 1);
    }

    #[test]
    fn a_cold_start_is_told_apart() {
        let factors = Factors {
            target: 0.75,
            cold: 0.6,
            headroom: 1.0,
        };
        assert_eq!((factors.limit(100), factors.warm_limit(100)), (45, 75));
    }

    proptest! {
        #[test]
        fn it_stays_within_1_and_the_gates_and_grows_with_each_factor(
            of in 1_u32..100_000,
            [a, b, cold, headroom] in prop::array::uniform4(0.0..=1.0_f64),
        ) {
            let less = limit(a.min(b), cold, headroom, of);
            let more = limit(a.max(b), cold, headroom, of);
            prop_assert!(1 <= less && less <= more && more <= of);
        }
    }
}
