//! The busy thresholds of a model.

use std::fmt;

use thiserror::Error;

/// The largest token count that a threshold may name: what a float holds exactly.
pub const MOST_TOKENS: u64 = 1 << 53;

/// The thresholds of one model. Each is a check of its own: setting one enables
/// no other, and without any no worker is ever busy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    /// Share of a rank's KV blocks, from 0 to 1.
    pub active_decode_blocks: Option<f64>,
    /// Prompt tokens of a rank that wait for their first output token.
    pub active_prefill_tokens: Option<u64>,
    /// The same as a multiple of the rank's `max_num_batched_tokens`; finite, 0 or more.
    pub active_prefill_tokens_frac: Option<f64>,
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threshold {
    /// [`Thresholds::active_decode_blocks`].
    DecodeBlocks,
    /// [`Thresholds::active_prefill_tokens`].
    PrefillTokens,
    /// [`Thresholds::active_prefill_tokens_frac`].
    PrefillTokensFrac,
}

/// A value that a threshold does not accept; displays what it does accept.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct OutOfRange {
    /// The threshold that refused it.
    pub threshold: Threshold,
    /// The value, as it was written.
    pub got: String,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, range) = (self.threshold.name(), self.threshold.range());
        write!(f, "{name} must be {range}, got {}", self.got)
    }
}

impl Threshold {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 3] = [
        Self::DecodeBlocks,
        Self::PrefillTokens,
        Self::PrefillTokensFrac,
    ];

    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DecodeBlocks => "active_decode_blocks_threshold",
            Self::PrefillTokens => "active_prefill_tokens_threshold",
            Self::PrefillTokensFrac => "active_prefill_tokens_threshold_frac",
        }
    }

    /// Its flag, with the dashes.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::DecodeBlocks => "--active-decode-blocks-threshold",
            Self::PrefillTokens => "--active-prefill-tokens-threshold",
            Self::PrefillTokensFrac => "--active-prefill-tokens-threshold-frac",
        }
    }

    /// The environment variable that is read when the flag is absent.
    #[must_use]
    pub fn environment(self) -> &'static str {
        match self {
            Self::DecodeBlocks => "DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD",
            Self::PrefillTokens => "DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD",
            Self::PrefillTokensFrac => "DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD_FRAC",
        }
    }

    /// What it accepts, as it is said in errors.
    #[must_use]
    pub fn range(self) -> &'static str {
        match self {
            Self::DecodeBlocks => "between 0.0 and 1.0",
            Self::PrefillTokens => "an integer from 0 to 9007199254740992",
            Self::PrefillTokensFrac => "a finite value greater than or equal to 0.0",
        }
    }

    /// Those of `thresholds` that are it: the others unset.
    #[must_use]
    pub fn alone(self, thresholds: Thresholds) -> Thresholds {
        let none = Thresholds::default();
        match self {
            Self::DecodeBlocks => Thresholds {
                active_decode_blocks: thresholds.active_decode_blocks,
                ..none
            },
            Self::PrefillTokens => Thresholds {
                active_prefill_tokens: thresholds.active_prefill_tokens,
                ..none
            },
            Self::PrefillTokensFrac => Thresholds {
                active_prefill_tokens_frac: thresholds.active_prefill_tokens_frac,
                ..none
            },
        }
    }

    /// Whether `thresholds` has it set.
    #[must_use]
    pub fn is_set(self, thresholds: &Thresholds) -> bool {
        match self {
            Self::DecodeBlocks => thresholds.active_decode_blocks.is_some(),
            Self::PrefillTokens => thresholds.active_prefill_tokens.is_some(),
            Self::PrefillTokensFrac => thresholds.active_prefill_tokens_frac.is_some(),
        }
    }

    /// Reads a value as a person writes it, whitespace around it allowed, into
    /// `thresholds`. `none`, in any case, unsets it.
    ///
    /// # Errors
    /// A text that is neither, or a value out of its range.
    pub fn read(self, text: &str, thresholds: &mut Thresholds) -> Result<(), OutOfRange> {
        let text = text.trim();
        let none = text.eq_ignore_ascii_case("none");
        let wrong = || OutOfRange {
            threshold: self,
            got: format!("{text:?}"),
        };
        let mut read = Thresholds::default();
        if !none {
            let number = || text.parse::<f64>().map_err(|_| wrong());
            match self {
                Self::DecodeBlocks => read.active_decode_blocks = Some(number()?),
                Self::PrefillTokensFrac => read.active_prefill_tokens_frac = Some(number()?),
                Self::PrefillTokens => {
                    read.active_prefill_tokens = Some(text.parse().map_err(|_| wrong())?);
                }
            }
            read.check()?;
        }
        self.copy(&read, thresholds);
        Ok(())
    }

    /// Sets this one as `from` has it, and no other.
    pub fn copy(self, from: &Thresholds, to: &mut Thresholds) {
        match self {
            Self::DecodeBlocks => to.active_decode_blocks = from.active_decode_blocks,
            Self::PrefillTokens => to.active_prefill_tokens = from.active_prefill_tokens,
            Self::PrefillTokensFrac => {
                to.active_prefill_tokens_frac = from.active_prefill_tokens_frac;
            }
        }
    }
}

impl Thresholds {
    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that each is within its range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let wrong = |threshold, got: String| Err(OutOfRange { threshold, got });
        match *self {
            Self {
                active_decode_blocks: Some(share),
                ..
            } if !(0.0..=1.0).contains(&share) => wrong(Threshold::DecodeBlocks, share.to_string()),
            Self {
                active_prefill_tokens: Some(tokens),
                ..
            } if tokens > MOST_TOKENS => wrong(Threshold::PrefillTokens, tokens.to_string()),
            Self {
                active_prefill_tokens_frac: Some(frac),
                ..
            } if !(frac.is_finite() && frac >= 0.0) => {
                wrong(Threshold::PrefillTokensFrac, frac.to_string())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(threshold: Threshold, text: &str) -> Result<Thresholds, String> {
        let mut thresholds = Thresholds::default();
        let read = threshold.read(text, &mut thresholds);
        read.map(|()| thresholds).map_err(|error| error.to_string())
    }

    #[test]
    fn each_is_read_alone_within_its_range() {
        let share = |value| Thresholds {
            active_decode_blocks: value,
            ..Thresholds::default()
        };
        for (text, value) in [("0", 0.0), (" 0.85 ", 0.85), ("1.0", 1.0)] {
            assert_eq!(read(Threshold::DecodeBlocks, text), Ok(share(Some(value))));
        }
        for text in ["1.01", "-0.1", "NaN", "inf", "", "85%"] {
            let error = read(Threshold::DecodeBlocks, text).unwrap_err();
            let said = "active_decode_blocks_threshold must be between 0.0 and 1.0, got ";
            assert!(error.starts_with(said), "{error}");
        }
        let tokens = read(Threshold::PrefillTokens, "10000").unwrap();
        assert_eq!(tokens.active_prefill_tokens, Some(10_000));
        assert!(tokens.active_decode_blocks.is_none());
        for text in ["-1", "1.5", "1e4", "9007199254740993", "x"] {
            let error = read(Threshold::PrefillTokens, text).unwrap_err();
            assert!(
                error.contains("an integer from 0 to 9007199254740992"),
                "{error}"
            );
        }
        let frac = read(Threshold::PrefillTokensFrac, "64").unwrap();
        assert_eq!(frac.active_prefill_tokens_frac, Some(64.0));
        for text in ["-0.5", "inf", "nan", "much"] {
            let error = read(Threshold::PrefillTokensFrac, text).unwrap_err();
            assert!(
                error.contains("a finite value greater than or equal to 0.0"),
                "{error}"
            );
        }
    }

    #[test]
    fn none_unsets_and_a_mistake_changes_nothing() {
        let mut thresholds = Thresholds {
            active_decode_blocks: Some(0.5),
            active_prefill_tokens: Some(7),
            active_prefill_tokens_frac: Some(2.0),
        };
        let before = thresholds;
        assert!(Threshold::PrefillTokens.read("x", &mut thresholds).is_err());
        assert_eq!(thresholds, before);
        for (threshold, text) in Threshold::ALL.into_iter().zip(["None", "none", " NONE "]) {
            assert!(threshold.is_set(&thresholds));
            threshold.read(text, &mut thresholds).unwrap();
            assert!(!threshold.is_set(&thresholds));
        }
        assert!(thresholds.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_read_is_in_range(text in any::<String>(), number: f64) {
            for threshold in Threshold::ALL {
                for text in [&text, &number.to_string()] {
                    if let Ok(thresholds) = read(threshold, text) {
                        prop_assert!(thresholds.check().is_ok());
                    }
                }
            }
        }
    }
}
