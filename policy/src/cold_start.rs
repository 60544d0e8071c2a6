//! Cold start: a lower limit for the first moments after the engine has idled.
//!
//! An engine that has been idle answers its first requests slowly: contexts are
//! loaded, weights unpacked. A controller that goes by the latency of a warm
//! engine admits a burst at full width into a cold one, sees the latency
//! objective violated, refuses everything, lets the engine cool down again, and
//! so oscillates. Lowering the limit before the burst, for a short time, keeps
//! it from starting.
//!
//! # The rule
//! While the engine has been idle for more than [`Settings::idle_ms`], and for
//! [`Settings::guard`] after that, the limit in force is multiplied by
//!
//! ```text
//! factor = max(0.3, 1 - cold_ms / 500)
//! ```
//!
//! `cold_ms` is what a cold start adds to a request, in milliseconds; the factor
//! has no unit. 200 ms give 0.6; from 350 ms on it is the floor, 0.3. A lowered
//! limit is never below 1 ([`scaled`]).
//!
//! The formula is that of the code in SIVARO's article "GPU Admission Control
//! Algorithm for Inference Servers". Its text speaks of a reduction by 50 %,
//! which the code gives only for 250 ms; the code is followed. Its ten times the
//! cold start, after which an engine counts as cold, are the code's 2 s at 200 ms.
//!
//! # Bad input
//! A sample that is not a number says nothing and changes nothing; a negative
//! one counts as 0. A clock that jumps back never lengthens the guard.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_policy::cold_start::{ColdStart, Settings, scaled};
//!
//! let mut guard = ColdStart::new(Settings::default());
//! let at = Duration::from_millis;
//! assert_eq!(guard.observe(at(0), 40.0), 1.0); // warm
//! assert_eq!(guard.observe(at(5_000), 2_100.0), 0.6); // idle beyond 2 s
//! let factor = guard.observe(at(5_100), 0.0); // a burst: still guarded
//! assert_eq!(scaled(16, factor), 9);
//! assert_eq!(guard.observe(at(7_000), 0.0), 1.0); // 2 s later
//! ```

use std::time::Duration;

/// The lowest factor: part of the engine stays usable, however cold.
pub const FLOOR: f64 = 0.3;

/// A cold start of this many milliseconds would leave nothing, but for [`FLOOR`].
pub const FULL_PENALTY_MS: f64 = 500.0;

/// When the guard applies, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Idle for longer than this, in milliseconds, the engine counts as cold.
    pub idle_ms: f64,
    /// How long the limit stays lowered once the engine is busy again.
    pub guard: Duration,
    /// What a cold start adds to a request, in milliseconds.
    pub cold_ms: f64,
}

/// The article's figures: cold after 2 s, guarded for 2 s, 200 ms of penalty.
impl Default for Settings {
    fn default() -> Self {
        Settings {
            idle_ms: 2_000.0,
            guard: Duration::from_secs(2),
            cold_ms: 200.0,
        }
    }
}

/// The factor for a cold start of this length: from [`FLOOR`] to 1.
///
/// Not a number, and anything negative, is no cold start: 1.
#[must_use]
pub fn factor(cold_ms: f64) -> f64 {
    // `max` gives the other operand where one is not a number.
    let cold_ms = cold_ms.max(0.0);
    (1.0 - cold_ms / FULL_PENALTY_MS).max(FLOOR)
}

/// A limit lowered by a factor from 0 to 1: rounded down, at least 1.
#[must_use]
pub fn scaled(limit: u32, factor: f64) -> u32 {
    // A float becomes an integer by saturating, and 0 if it is not a number.
    ((f64::from(limit) * factor) as u32).clamp(1, limit.max(1))
}

/// Follows the engine's idle time and says how far to lower the limit.
#[derive(Clone, Debug)]
pub struct ColdStart {
    settings: Settings,
    /// The limit stays lowered until then. `None`: warm.
    until: Option<Duration>,
}

impl ColdStart {
    /// Starts warm.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        ColdStart {
            settings,
            until: None,
        }
    }

    /// Takes a sample and gives the factor for the limit: 1 while warm.
    ///
    /// `now` is the time since any fixed moment, `idle_ms` the time since the
    /// engine last worked, in milliseconds.
    pub fn observe(&mut self, now: Duration, idle_ms: f64) -> f64 {
        let guarded = now.saturating_add(self.settings.guard);
        if idle_ms > self.settings.idle_ms {
            self.until = Some(guarded);
        } else {
            // `min`: later than that only if the clock has jumped back.
            self.until = self
                .until
                .filter(|until| now < *until)
                .map(|until| until.min(guarded));
        }
        match self.until {
            Some(_) => factor(self.settings.cold_ms),
            None => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WARM_MS: f64 = 2_000.0;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_factor_is_the_formulas() {
        for (cold_ms, expected) in [
            (0.0, 1.0),
            (100.0, 0.8),
            (200.0, 0.6),
            (250.0, 0.5),
            (350.0, 0.3),
            (500.0, 0.3),
            (f64::INFINITY, 0.3),
            (-200.0, 1.0),
            (f64::NEG_INFINITY, 1.0),
            (f64::NAN, 1.0),
        ] {
            assert!((factor(cold_ms) - expected).abs() < 1e-12, "{cold_ms}");
        }
    }

    #[test]
    fn the_limit_is_lowered_while_idle_and_for_the_guard_after() {
        let mut guard = ColdStart::new(Settings::default());
        assert_eq!(guard.observe(at(0), WARM_MS), 1.0, "2 s are not yet cold");
        assert_eq!(guard.observe(at(100), WARM_MS + 1.0), 0.6);
        assert_eq!(guard.observe(at(9_000), 11_000.0), 0.6, "still idle");
        assert_eq!(guard.observe(at(10_999), 0.0), 0.6);
        assert_eq!(guard.observe(at(11_000), 0.0), 1.0, "2 s after it ended");
        assert_eq!(guard.observe(at(11_001), 0.0), 1.0);
    }

    #[test]
    fn idling_again_guards_again() {
        let mut guard = ColdStart::new(Settings::default());
        for start in [0, 60_000] {
            assert_eq!(guard.observe(at(start), 3_000.0), 0.6);
            assert_eq!(guard.observe(at(start + 2_000), 0.0), 1.0);
        }
    }

    #[test]
    fn a_clock_that_jumps_back_does_not_lengthen_the_guard() {
        let mut guard = ColdStart::new(Settings::default());
        assert_eq!(guard.observe(at(1_000_000), 3_000.0), 0.6);
        assert_eq!(guard.observe(at(5_000), 0.0), 0.6);
        assert_eq!(guard.observe(at(7_000), 0.0), 1.0);
    }

    #[test]
    fn a_sample_that_is_no_number_neither_starts_nor_ends_the_guard() {
        let mut guard = ColdStart::new(Settings::default());
        assert_eq!(guard.observe(at(0), f64::NAN), 1.0);
        assert_eq!(guard.observe(at(1), 3_000.0), 0.6);
        assert_eq!(guard.observe(at(2), f64::NAN), 0.6);
        assert_eq!(guard.observe(at(2_001), f64::NAN), 1.0);
    }

    #[test]
    fn a_lowered_limit_is_rounded_down_and_at_least_one() {
        assert_eq!(scaled(16, 0.6), 9);
        assert_eq!(scaled(2, 0.3), 1);
        assert_eq!(scaled(1, 1.0), 1);
        assert_eq!(scaled(0, 1.0), 1);
        assert_eq!(scaled(u32::MAX, 1.0), u32::MAX);
        assert_eq!(scaled(8, f64::NAN), 1);
    }

    proptest! {
        #[test]
        fn the_factor_is_bounded(cold_ms in prop::num::f64::ANY) {
            prop_assert!((FLOOR..=1.0).contains(&factor(cold_ms)));
        }

        #[test]
        fn a_longer_cold_start_never_raises_the_factor(
            a in prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::INFINITE,
            b in -1_000.0..1_000.0,
        ) {
            let (shorter, longer) = if a <= b { (a, b) } else { (b, a) };
            prop_assert!(factor(longer) <= factor(shorter));
        }

        #[test]
        fn a_warm_engine_is_left_alone(
            cold_ms in prop::num::f64::ANY,
            samples in prop::collection::vec((any::<u32>(), 0.0..=WARM_MS), 1..50),
        ) {
            let mut guard = ColdStart::new(Settings { cold_ms, ..Settings::default() });
            for (now, idle_ms) in samples {
                prop_assert_eq!(guard.observe(at(now.into()), idle_ms), 1.0);
            }
        }

        #[test]
        fn whatever_is_sampled_the_answer_is_one_of_two(
            settings in (prop::num::f64::ANY, any::<u64>(), prop::num::f64::ANY),
            samples in prop::collection::vec((any::<u64>(), prop::num::f64::ANY), 1..50),
        ) {
            let (idle_ms, guard, cold_ms) = settings;
            let mut guard = ColdStart::new(Settings { idle_ms, guard: at(guard), cold_ms });
            for (now, idle_ms) in samples {
                let answer = guard.observe(at(now), idle_ms);
                prop_assert!(answer == 1.0 || answer == factor(cold_ms));
            }
        }

        #[test]
        fn a_scaled_limit_stays_within_1_and_itself(limit in 1_u32.., factor in 0.0..=1.0) {
            prop_assert!((1..=limit).contains(&scaled(limit, factor)));
        }
    }
}
