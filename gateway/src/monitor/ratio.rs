//! Tokens from bytes: a running ratio per model, corrected by what engines say
//! that prompts came to.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What a token is thought to be before an engine has told: 4 bytes, as English
/// text is about, with the weight of this many tokens.
const FIRST_BYTES_PER_TOKEN: f64 = 4.0;
const FIRST_TOKENS: f64 = 256.0;

/// Past so many tokens the past counts half.
const REMEMBERED_TOKENS: f64 = 65_536.0;

/// One prompt is not taken to have more than this many tokens a byte, nor fewer
/// than one in this many bytes.
const MOST_TOKENS_PER_BYTE: f64 = 16.0;
const MOST_BYTES_PER_TOKEN: f64 = 4096.0;

/// Models that are told apart; what comes later has the first ratio.
const MOST_MODELS: usize = 1024;

/// The bytes that a model's tokens come to.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    bytes: f64,
    tokens: f64,
}

impl Ratio {
    const FIRST: Self = Self {
        bytes: FIRST_BYTES_PER_TOKEN * FIRST_TOKENS,
        tokens: FIRST_TOKENS,
    };

    fn learn(&mut self, bytes: u64, tokens: u64) {
        if bytes == 0 || tokens == 0 {
            return;
        }
        let bytes = bytes as f64;
        let tokens =
            (tokens as f64).clamp(bytes / MOST_BYTES_PER_TOKEN, bytes * MOST_TOKENS_PER_BYTE);
        // However long a prompt is, it is one of many.
        let weight = (REMEMBERED_TOKENS / 8.0 / tokens).min(1.0);
        self.bytes += bytes * weight;
        self.tokens += tokens * weight;
        if self.tokens > REMEMBERED_TOKENS {
            self.bytes /= 2.0;
            self.tokens /= 2.0;
        }
    }

    fn tokens(self, bytes: u64) -> u64 {
        (bytes as f64 * self.tokens / self.bytes).ceil() as u64
    }
}

/// The ratios of all models.
#[derive(Debug, Default)]
pub(super) struct Ratios(Mutex<BTreeMap<String, Ratio>>);

impl Ratios {
    /// How many tokens so many bytes are likely to be.
    pub fn tokens(&self, model: &str, bytes: u64) -> u64 {
        let ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ratios
            .get(model)
            .copied()
            .unwrap_or(Ratio::FIRST)
            .tokens(bytes)
    }

    /// Learns that a prompt of so many bytes was so many tokens.
    pub fn learn(&self, model: &str, bytes: u64, tokens: u64) {
        let mut ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ratio) = ratios.get_mut(model) {
            ratio.learn(bytes, tokens);
        } else if ratios.len() < MOST_MODELS {
            let mut ratio = Ratio::FIRST;
            ratio.learn(bytes, tokens);
            ratios.insert(model.to_owned(), ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ratio_follows_what_engines_say() {
        let ratios = Ratios::default();
        assert_eq!(ratios.tokens("m", 400), 100);
        assert_eq!(ratios.tokens("m", 1), 1);
        assert_eq!(ratios.tokens("m", 0), 0);
        for _ in 0..200 {
            ratios.learn("m", 2_000, 1_000);
        }
        let learnt = ratios.tokens("m", 20_000);
        assert!((9_900..=10_000).contains(&learnt), "{learnt}");
        assert_eq!(ratios.tokens("other", 400), 100, "each model has its own");
        for _ in 0..200 {
            ratios.learn("m", 8_000, 1_000);
        }
        let learnt = ratios.tokens("m", 80_000);
        assert!(
            (10_000..=10_800).contains(&learnt),
            "the past fades: {learnt}"
        );
    }

    #[test]
    fn models_are_bounded() {
        let ratios = Ratios::default();
        for model in 0..2 * MOST_MODELS {
            ratios.learn(&model.to_string(), 10, 10);
        }
        assert_eq!(ratios.0.lock().unwrap().len(), MOST_MODELS);
    }

    proptest! {
        #[test]
        fn no_usage_makes_an_estimate_absurd(
            told in prop::collection::vec((any::<u64>(), any::<u64>()), 0..50),
            bytes in 0_u64..1 << 40,
        ) {
            let ratios = Ratios::default();
            for (bytes, tokens) in told {
                ratios.learn("m", bytes, tokens);
            }
            let tokens = ratios.tokens("m", bytes);
            prop_assert!(tokens <= bytes * 17 + 1, "{tokens}");
            prop_assert!(tokens >= bytes / 4097, "{tokens}");
        }
    }
}
