//! Memory headroom: critical classes first, and a limit that shrinks with it.
//!
//! From [`CRITICAL_FROM`] of the memory on, classes that are not critical are
//! refused, so that the rest is left to those that are. And the limit shrinks in
//! proportion to what is left, from the whole at that share to nothing at 1:
//!
//! ```text
//! factor = 1                                 share ≤ from
//! factor = (1 - share) / (1 - from)          share > from        no unit
//! ```
//!
//! A lowered limit is never below 1. Sequences that run grow their caches while
//! they generate; the shrinking limit leaves them the room, instead of letting
//! newcomers take it and having the engine preempt.

/// The share of memory from which critical classes go first unless set otherwise.
pub const CRITICAL_FROM: f64 = 0.85;

/// Whether a class is refused for want of headroom.
#[must_use]
pub fn sheds(critical: bool, share: f64, from: f64) -> bool {
    !critical && share >= from
}

/// What the limit is multiplied by: from 0 to 1, never rising with `share`.
/// Not a number says nothing: 1.
#[must_use]
pub fn factor(share: f64, from: f64) -> f64 {
    if share > from {
        // `from` of 1 or more is never reached by a share, but for rounding.
        ((1.0 - share) / (1.0 - from)).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn at_85_percent_only_critical_classes_enter() {
        assert!(!sheds(false, 0.849, CRITICAL_FROM));
        assert!(sheds(false, 0.85, CRITICAL_FROM));
        assert!(!sheds(true, 1.0, CRITICAL_FROM));
        assert!(!sheds(false, f64::NAN, CRITICAL_FROM));
    }

    #[test]
    fn the_limit_shrinks_with_what_is_left() {
        for (share, expected) in [(0.0, 1.0), (0.85, 1.0), (0.925, 0.5), (1.0, 0.0)] {
            let found = factor(share, CRITICAL_FROM);
            assert!((found - expected).abs() < 1e-9, "{share}: {found}");
        }
        assert_eq!(factor(f64::NAN, CRITICAL_FROM), 1.0);
        assert_eq!(factor(1.0, 1.0), 1.0);
    }

    proptest! {
        #[test]
        fn less_headroom_never_raises_the_limit(
            a in 0.0..=1.0_f64,
            b in 0.0..=1.0_f64,
            from in 0.0..=1.0_f64,
        ) {
            prop_assert!(factor(a.max(b), from) <= factor(a.min(b), from));
            prop_assert!((0.0..=1.0).contains(&factor(a, from)));
            prop_assert!(!sheds(false, a.min(b), from) || sheds(false, a.max(b), from));
        }
    }
}
