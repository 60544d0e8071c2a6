//! How long one step of the engine takes.
//!
//! A step runs a batch of tokens through every layer once:
//!
//! ```text
//! step = max(floor, base + per_token x tokens)     every matrix: roofline
//!      + per_kv_token x kv_read                    decode attention: reads the cache
//!      + per_pair x prefill_pairs                  prefill attention: computes
//! ```
//!
//! Few tokens cost as much as one, because reading the weights is what takes
//! the time (`floor`); many tokens cost by the token. That is why batching pays
//! and why a full batch is slow.
//!
//! # Where the constants come from
//!
//! `floor`, `base` and `per_token` are fitted to Vidur's public H100 Llama-2-7B
//! profile (MIT): the medians of `mlp.csv` on one GPU, summed over 32 layers
//! (the residual addition counts twice a layer), plus one embedding. `floor` is
//! the median over the rows of at most 64 tokens; `base` and `per_token` are the
//! least-squares line through the rows of 256 to 4096 tokens, weighted by the
//! inverse square of the time. [`fit`] does exactly this. Over the 261 rows the
//! model is off by 4.5 % on average and 13 % at the 95th percentile: what it
//! leaves out is that a GPU works in tiles, so that time climbs in steps.
//!
//! The profile has no attention. Those two constants are arithmetic on the same
//! model and GPU: a cached token is 2 x 32 x 4096 x 2 bytes, read at 80 % of
//! 3.35 TB/s; a query-key pair is 4 x 32 x 4096 operations at 400 TFLOP/s.

use std::time::Duration;

/// Rows of at most this many tokens are on the flat part of the profile.
const FLAT_UP_TO: u32 = 64;
/// Rows of at least this many tokens are on the sloped part.
const SLOPED_FROM: u32 = 256;

/// What one step computes, as the cost model sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepShape {
    /// Tokens through the layers: every prefill token, and one per decoding sequence.
    pub tokens: u64,
    /// Cached tokens that decoding sequences attend to, summed.
    pub kv_read: u64,
    /// Query-key pairs of the prefill tokens, summed.
    pub prefill_pairs: u64,
}

/// The step-time model's constants, all in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Least time of a step, µs.
    pub floor_us: f64,
    /// Where the sloped part would start with no tokens, µs.
    pub base_us: f64,
    /// Each token, µs.
    pub per_token_us: f64,
    /// Each cached token that decoding reads, µs.
    pub per_kv_token_us: f64,
    /// Each query-key pair of prefill, µs.
    pub per_pair_us: f64,
}

impl CostModel {
    /// Llama-2-7B on one H100, as the module's documentation derives it.
    pub const H100_LLAMA2_7B: Self = Self {
        floor_us: 5859.0,
        base_us: 3942.0,
        per_token_us: 19.63,
        per_kv_token_us: 0.196,
        per_pair_us: 0.0013,
    };

    /// Time of a step without attention, in µs.
    pub fn layers_us(&self, tokens: u64) -> f64 {
        self.floor_us
            .max(self.base_us + self.per_token_us * tokens as f64)
    }

    /// Time of a step. Constants that make it negative or not a number give zero.
    pub fn step(&self, shape: StepShape) -> Duration {
        let us = self.layers_us(shape.tokens)
            + self.per_kv_token_us * shape.kv_read as f64
            + self.per_pair_us * shape.prefill_pairs as f64;
        Duration::try_from_secs_f64(us / 1e6).unwrap_or_default()
    }
}

impl Default for CostModel {
    fn default() -> Self {
        Self::H100_LLAMA2_7B
    }
}

/// Fits `floor`, `base` and `per_token` to measured `(tokens, µs)` points and
/// keeps the attention constants of `prior`.
///
/// `None` without a point on the flat part or two sizes on the sloped part, or
/// when a time is not a positive number.
pub fn fit(points: &[(u32, f64)], prior: CostModel) -> Option<CostModel> {
    if points.iter().any(|p| !(p.1.is_finite() && p.1 > 0.0)) {
        return None;
    }
    let part = |keep: fn(u32) -> bool| points.iter().copied().filter(move |p| keep(p.0));
    let mut flat: Vec<f64> = part(|n| n <= FLAT_UP_TO).map(|p| p.1).collect();
    flat.sort_by(f64::total_cmp);
    let floor_us = *flat.get(flat.len() / 2)?;

    let (mut s, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (tokens, us) in part(|n| n >= SLOPED_FROM) {
        let (x, w) = (f64::from(tokens), 1.0 / (us * us));
        s += w;
        sx += w * x;
        sy += w * us;
        sxx += w * x * x;
        sxy += w * x * us;
    }
    let per_token_us = (s * sxy - sx * sy) / (s * sxx - sx * sx);
    let base_us = (sy - per_token_us * sx) / s;
    (per_token_us.is_finite() && base_us.is_finite()).then_some(CostModel {
        floor_us,
        base_us,
        per_token_us,
        ..prior
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step_ms(tokens: u64, kv_read: u64) -> f64 {
        let shape = StepShape {
            tokens,
            kv_read,
            prefill_pairs: 0,
        };
        CostModel::default().step(shape).as_secs_f64() * 1e3
    }

    #[test]
    fn a_small_batch_costs_as_much_as_one_sequence() {
        assert_eq!(step_ms(1, 0), step_ms(64, 0));
        assert!(step_ms(512, 0) > 2.0 * step_ms(64, 0));
    }

    #[test]
    fn long_contexts_slow_decoding() {
        assert!(step_ms(64, 64 * 1000) > 3.0 * step_ms(64, 0));
    }

    #[test]
    fn fit_finds_the_constants_of_exact_data() {
        let truth = CostModel::default();
        let points: Vec<_> = (1..=4096)
            .step_by(7)
            .map(|n| (n, truth.layers_us(u64::from(n))))
            .collect();
        let found = fit(&points, truth).unwrap();
        assert!((found.per_token_us / truth.per_token_us - 1.0).abs() < 1e-6);
        assert!((found.base_us / truth.base_us - 1.0).abs() < 1e-6);
        assert_eq!(found.floor_us, truth.floor_us);
    }

    #[test]
    fn fit_refuses_what_it_cannot_use() {
        let prior = CostModel::default();
        assert_eq!(fit(&[], prior), None);
        assert_eq!(fit(&[(1, 5.0), (512, 9.0)], prior), None);
        assert_eq!(fit(&[(1, 5.0), (512, f64::NAN), (1024, 9.0)], prior), None);
    }
}
