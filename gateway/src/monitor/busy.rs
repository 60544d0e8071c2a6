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
