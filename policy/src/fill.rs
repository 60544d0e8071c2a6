//! Batch filling: a slot of the running batch that stays empty is lost.
//!
//! A step of a batching engine takes about as long for a few sequences as for
//! one, since reading the weights is what takes the time (the roofline model;
//! Williams, Waterman, Patterson, 2009). So while the batch is well below its
//! size a request costs the others nearly nothing:
//!
//! ```text
//! filling = running < fill_below × batch size, and its memory fits       fill_below = 0.7
//! ```
//!
//! Such a request joins at the engine's next step, so that this, not the queue's
//! drain time, is what it waits. The queueing share of the SLO is not judged for
//! it. The deadline itself still is: a request that is bound to be late fills no
//! batch usefully.
//!
//! The time to the next step is half a step on average, for an arrival at a
//! moment that the engine does not choose; a step takes `1 / rate`. The rate is
//! counted by the caller from first tokens and tokens of one sequence.

/// The share of the batch below which it is filled unless set otherwise.
pub const FILL_BELOW: f64 = 0.7;

/// Whether the batch is to be filled. A share that is not a number fills nothing.
#[must_use]
pub fn filling(running: u64, batch_size: u64, fill_below: f64) -> bool {
    (running as f64) < fill_below * batch_size as f64
}

/// Time to the engine's next step in milliseconds, from its rate in steps per
/// second. An unknown rate, 0 or less, is no time: nothing speaks against it.
#[must_use]
pub fn next_step_ms(steps_per_second: f64) -> f64 {
    if steps_per_second > 0.0 {
        (500.0 / steps_per_second).min(60_000.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn below_the_share_and_not_at_it() {
        assert!(filling(69, 100, FILL_BELOW));
        assert!(!filling(70, 100, FILL_BELOW));
        assert!(!filling(0, 0, FILL_BELOW));
        assert!(!filling(0, 100, f64::NAN));
    }

    #[test]
    fn half_a_step_on_average() {
        assert_eq!(next_step_ms(50.0), 10.0);
        for unknown in [0.0, -1.0, f64::NAN] {
            assert_eq!(next_step_ms(unknown), 0.0);
        }
        assert_eq!(next_step_ms(1e-12), 60_000.0);
    }

    proptest! {
        #[test]
        fn a_fuller_batch_is_never_filled_sooner(
            a in 0_u64..2_000,
            b in 0_u64..2_000,
            size in 0_u64..1_000,
            share in 0.0..=1.0_f64,
        ) {
            let (less, more) = (a.min(b), a.max(b));
            prop_assert!(!filling(more, size, share) || filling(less, size, share));
            prop_assert!(!filling(less, size, share) || less < size);
        }

        #[test]
        fn a_faster_engine_steps_sooner(a in 0.01..1e4_f64, b in 0.01..1e4_f64) {
            prop_assert!(next_step_ms(a.max(b)) <= next_step_ms(a.min(b)));
        }
    }
}
