//! The busy rules: pure functions on values.
//!
//! A rank is busy if any configured check is over, and over is strictly more:
//!
//! | threshold | over |
//! | --- | --- |
//! | decode blocks | `active_decode_blocks / kv_total_blocks > threshold`, or the same of `kv_used_blocks` |
//! | prefill tokens | `active_prefill_tokens > threshold` |
//! | prefill tokens, as a fraction | `active_prefill_tokens > floor(fraction × max_num_batched_tokens)` |
//!
//! A check whose signal or total is missing, or whose total is 0, is skipped. A worker
//! is busy only if all its ranks are, and has at least one.

use super::sample::Totals;
use super::threshold::Thresholds;

/// What one source says of one rank, in so far as it is not too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// KV blocks that a scheduler counts as active.
    pub active_decode_blocks: Option<u64>,
    /// KV blocks that the engine holds.
    pub kv_used_blocks: Option<u64>,
    /// Prompt tokens that wait for their first output token.
    pub active_prefill_tokens: Option<u64>,
}

/// Whether a rank is busy by what one source says.
#[must_use]
pub fn rank_is_busy(thresholds: &Thresholds, signals: Signals, totals: Totals) -> bool {
    over_blocks(thresholds, signals.active_decode_blocks, totals)
        || over_blocks(thresholds, signals.kv_used_blocks, totals)
        || over_tokens(thresholds, signals.active_prefill_tokens)
        || over_frac(thresholds, signals.active_prefill_tokens, totals)
}

/// Whether a worker is busy whose ranks are busy or not as `ranks` says.
#[must_use]
pub fn worker_is_busy(ranks: impl IntoIterator<Item = bool>) -> bool {
    let mut ranks = ranks.into_iter().peekable();
    ranks.peek().is_some() && ranks.all(|busy| busy)
}

/// A share is compared by division: 29 of 100 blocks are exactly 0.29, while
/// 0.29 × 100 is a little less than 29.
fn over_blocks(thresholds: &Thresholds, blocks: Option<u64>, totals: Totals) -> bool {
    let (Some(threshold), Some(blocks), Some(total)) = (
        thresholds.active_decode_blocks,
        blocks,
        totals.kv_total_blocks,
    ) else {
        return false;
    };
    total > 0 && blocks as f64 / total as f64 > threshold
}

fn over_tokens(thresholds: &Thresholds, tokens: Option<u64>) -> bool {
    let threshold = thresholds.active_prefill_tokens;
    tokens
        .zip(threshold)
        .is_some_and(|(tokens, most)| tokens > most)
}

fn over_frac(thresholds: &Thresholds, tokens: Option<u64>, totals: Totals) -> bool {
    let (Some(frac), Some(tokens), Some(batch)) = (
        thresholds.active_prefill_tokens_frac,
        tokens,
        totals.max_num_batched_tokens,
    ) else {
        return false;
    };
    // The conversion stops at the largest integer.
    batch > 0 && tokens > (frac * batch as f64).floor() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(threshold: f64) -> Thresholds {
        Thresholds {
            active_decode_blocks: Some(threshold),
            ..Thresholds::default()
        }
    }

    fn of(kv_total_blocks: Option<u64>, max_num_batched_tokens: Option<u64>) -> Totals {
        Totals {
            kv_total_blocks,
            max_num_batched_tokens,
            block_size: None,
        }
    }

    fn active(blocks: u64) -> Signals {
        Signals {
            active_decode_blocks: Some(blocks),
            ..Signals::default()
        }
    }

    fn used(blocks: u64) -> Signals {
        Signals {
            kv_used_blocks: Some(blocks),
            ..Signals::default()
        }
    }

    fn prefill(tokens: u64) -> Signals {
        Signals {
            active_prefill_tokens: Some(tokens),
            ..Signals::default()
        }
    }

    #[test]
    fn blocks_are_over_by_either_signal_and_strictly() {
        for signals in [active, used] {
            for (threshold, total, most) in
                [(0.85, 100, 85), (0.29, 100, 29), (1.0, 7, 7), (0.0, 5, 0)]
            {
                let set = blocks(threshold);
                let busy = |count| rank_is_busy(&set, signals(count), of(Some(total), None));
                assert!(!busy(most), "{most} of {total} at {threshold}");
                assert!(busy(most + 1), "{} of {total} at {threshold}", most + 1);
            }
        }
        let one_of_two = Signals {
            active_decode_blocks: Some(0),
            kv_used_blocks: Some(9),
            active_prefill_tokens: None,
        };
        assert!(rank_is_busy(&blocks(0.85), one_of_two, of(Some(10), None)));
    }

    #[test]
    fn prefill_tokens_are_over_by_number_or_by_fraction() {
        let number = Thresholds {
            active_prefill_tokens: Some(10_000),
            ..Thresholds::default()
        };
        assert!(!rank_is_busy(&number, prefill(10_000), Totals::default()));
        assert!(rank_is_busy(&number, prefill(10_001), Totals::default()));
        let frac = Thresholds {
            active_prefill_tokens_frac: Some(1.5),
            ..Thresholds::default()
        };
        // 1.5 × 8191 is 12286.5, and its floor 12286.
        let batch = of(None, Some(8_191));
        assert!(!rank_is_busy(&frac, prefill(12_286), batch));
        assert!(rank_is_busy(&frac, prefill(12_287), batch));
        let huge = Thresholds {
            active_prefill_tokens_frac: Some(f64::MAX),
            ..Thresholds::default()
        };
        assert!(!rank_is_busy(&huge, prefill(u64::MAX), batch));
        let none = Thresholds {
            active_prefill_tokens: Some(0),
            ..Thresholds::default()
        };
        assert!(!rank_is_busy(&none, prefill(0), Totals::default()));
        assert!(rank_is_busy(&none, prefill(1), Totals::default()));
    }

    #[test]
    fn missing_totals_and_signals_skip_a_check() {
        let all = Thresholds {
            active_decode_blocks: Some(0.0),
            active_prefill_tokens: None,
            active_prefill_tokens_frac: Some(0.0),
        };
        let everything = Signals {
            active_decode_blocks: Some(u64::MAX),
            kv_used_blocks: Some(u64::MAX),
            active_prefill_tokens: Some(u64::MAX),
        };
        for totals in [of(None, None), of(Some(0), Some(0))] {
            assert!(!rank_is_busy(&all, everything, totals));
        }
        let totals = of(Some(1), Some(1));
        assert!(rank_is_busy(&all, everything, totals));
        assert!(!rank_is_busy(&all, Signals::default(), totals));
    }

    #[test]
    fn a_worker_is_busy_only_if_all_its_ranks_are() {
        assert!(!worker_is_busy([]));
        assert!(worker_is_busy([true]));
        assert!(worker_is_busy([true, true]));
        assert!(!worker_is_busy([true, false, true]));
    }

    fn thresholds() -> impl Strategy<Value = Thresholds> {
        let share = prop::option::of(0.0..=1.0);
        let frac = prop::option::of(0.0..100.0);
        (share, any::<Option<u16>>(), frac).prop_map(|(share, tokens, frac)| Thresholds {
            active_decode_blocks: share,
            active_prefill_tokens: tokens.map(u64::from),
            active_prefill_tokens_frac: frac,
        })
    }

    fn signals() -> impl Strategy<Value = Signals> {
        let count = || prop::option::of(0_u64..20_000);
        (count(), count(), count()).prop_map(|(active, used, tokens)| Signals {
            active_decode_blocks: active,
            kv_used_blocks: used,
            active_prefill_tokens: tokens,
        })
    }

    proptest! {
        #[test]
        fn nothing_set_is_never_busy(signals in signals(), total: Option<u64>, batch: Option<u64>) {
            prop_assert!(!rank_is_busy(&Thresholds::default(), signals, of(total, batch)));
        }

        /// Each check is its own: together they are busy exactly when one alone is.
        #[test]
        fn checks_are_independent(
            all in thresholds(),
            signals in signals(),
            total in prop::option::of(0_u64..20_000),
            batch in prop::option::of(0_u64..20_000),
        ) {
            let alone = [
                Thresholds { active_decode_blocks: all.active_decode_blocks, ..Thresholds::default() },
                Thresholds { active_prefill_tokens: all.active_prefill_tokens, ..Thresholds::default() },
                Thresholds {
                    active_prefill_tokens_frac: all.active_prefill_tokens_frac,
                    ..Thresholds::default()
                },
            ];
            let totals = of(total, batch);
            let any = alone.iter().any(|one| rank_is_busy(one, signals, totals));
            prop_assert_eq!(rank_is_busy(&all, signals, totals), any);
        }

        /// More load never makes a busy rank free.
        #[test]
        fn load_only_adds(
            all in thresholds(), signals in signals(), more in 0_u64..10_000,
            total in 0_u64..20_000, batch in 0_u64..20_000,
        ) {
            let grown = Signals {
                active_decode_blocks: signals.active_decode_blocks.map(|n| n + more),
                kv_used_blocks: signals.kv_used_blocks.map(|n| n + more),
                active_prefill_tokens: signals.active_prefill_tokens.map(|n| n + more),
            };
            let totals = of(Some(total), Some(batch));
            if rank_is_busy(&all, signals, totals) {
                prop_assert!(rank_is_busy(&all, grown, totals));
            }
        }

        /// The share is judged as whole numbers are: n of d is not over n / d.
        #[test]
        fn a_share_is_exact(used_of in 0_u64..1_000_000, total in 1_u64..1_000_000) {
            let used_of = used_of.min(total);
            let threshold = used_of as f64 / total as f64;
            let totals = of(Some(total), None);
            prop_assert!(!rank_is_busy(&blocks(threshold), used(used_of), totals));
            prop_assert!(rank_is_busy(&blocks(threshold), used(used_of + 1), totals));
        }
    }
}
