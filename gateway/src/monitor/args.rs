//! The monitor's flags and environment.

use std::time::Duration;

use clap::{ArgAction, Args};
use thiserror::Error;

use super::members::MonitorSettings;
use super::sample::Totals;
use super::threshold::{OutOfRange, Threshold, Thresholds};
use crate::cli::values::seconds;

/// The former switch for all thresholds.
const ADMISSION_CONTROL: &str = "DYN_ADMISSION_CONTROL";

/// Takes `/busy_threshold` away.
const DISABLE_ADMIN_API: &str = "DYN_DISABLE_FRONTEND_ADMIN_API";

/// The threshold flags, for `#[command(flatten)]`. Each is a check of its own.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Busy thresholds")]
pub struct ThresholdArgs {
    #[arg(
        long,
        value_name = "SHARE",
        allow_negative_numbers = true,
        help = help(Threshold::DecodeBlocks),
        value_parser = |text: &str| value(Threshold::DecodeBlocks, text)
    )]
    active_decode_blocks_threshold: Option<Thresholds>,

    #[arg(
        long,
        value_name = "TOKENS",
        allow_negative_numbers = true,
        help = help(Threshold::PrefillTokens),
        value_parser = |text: &str| value(Threshold::PrefillTokens, text)
    )]
    active_prefill_tokens_threshold: Option<Thresholds>,

    #[arg(
        long,
        value_name = "FACTOR",
        allow_negative_numbers = true,
        help = help(Threshold::PrefillTokensFrac),
        value_parser = |text: &str| value(Threshold::PrefillTokensFrac, text)
    )]
    active_prefill_tokens_threshold_frac: Option<Thresholds>,

    /// Accepted and ignored, as DYN_ADMISSION_CONTROL is: set the thresholds
    /// that are wanted instead.
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "")]
    admission_control: Option<String>,
}

/// The monitor's other flags, for `#[command(flatten)]`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Load monitor")]
pub struct MonitorArgs {
    /// Seconds after which what a worker said of its load counts no longer.
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = seconds)]
    load_ttl: Duration,

    /// Seconds from one reading of a worker's metrics page to the next.
    #[arg(long, value_name = "SECONDS", default_value = "1", allow_negative_numbers = true, value_parser = seconds)]
    scrape_interval: Duration,

    /// Read no metrics pages.
    #[arg(long, conflicts_with = "scrape_interval")]
    no_scrape: bool,

    /// Tokens in one KV block, where a worker does not tell.
    #[arg(long, value_name = "TOKENS", default_value_t = 16, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    kv_cache_block_size: u32,

    /// KV blocks of one rank, where a worker does not tell.
    #[arg(long, value_name = "BLOCKS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    kv_total_blocks: Option<u64>,

    /// Tokens in one step of one rank, at most, where a worker does not tell.
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1 << 53))]
    max_num_batched_tokens: Option<u64>,

    /// Count the blocks of generated tokens too, not only those of prompts.
    #[arg(long, action = ArgAction::SetTrue)]
    router_track_output_blocks: bool,

    /// Take the routes /busy_threshold away [env: DYN_DISABLE_FRONTEND_ADMIN_API]
    #[arg(long)]
    disable_frontend_admin_api: bool,
}

/// What flags and environment say that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MonitorArgsError {
    /// A threshold's variable is not within its range.
    #[error("{variable}: {error}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What it accepts.
        error: OutOfRange,
    },
    /// Every sample would be too old before the next one came.
    #[error(
        "--scrape-interval must be shorter than --load-ttl, or what a page says is too old \
         before it is read again: got {interval:?} and {ttl:?}"
    )]
    Interval {
        /// The interval.
        interval: Duration,
        /// The age at which a sample counts no longer.
        ttl: Duration,
    },
}

/// What flags and environment amount to, and what to tell the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What to build the monitor with.
    pub settings: MonitorSettings,
    /// What was given and has no effect, a sentence each.
    pub warnings: Vec<String>,
}

/// Resolves the flags against an environment: a flag goes before its variable. An
/// empty variable counts as unset; `none` unsets a threshold.
///
/// # Errors
/// A variable out of its range, or an interval that is no shorter than the time for
/// which samples count.
pub fn resolve(
    thresholds: &ThresholdArgs,
    monitor: &MonitorArgs,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Resolved, MonitorArgsError> {
    let variable = |name| environment(name).filter(|value| !value.trim().is_empty());
    let interval = monitor.scrape_interval;
    if !monitor.no_scrape && interval >= monitor.load_ttl {
        let ttl = monitor.load_ttl;
        return Err(MonitorArgsError::Interval { interval, ttl });
    }
    let disabled = variable(DISABLE_ADMIN_API).is_some_and(|value| is_true(&value));
    let settings = MonitorSettings {
        thresholds: thresholds.resolve(&variable)?,
        load_ttl: monitor.load_ttl,
        scrape_interval: (!monitor.no_scrape).then_some(interval),
        block_size: monitor.kv_cache_block_size,
        track_output_blocks: monitor.router_track_output_blocks,
        totals: Totals {
            kv_total_blocks: monitor.kv_total_blocks,
            max_num_batched_tokens: monitor.max_num_batched_tokens,
            block_size: None,
        },
        admin_api: !(monitor.disable_frontend_admin_api || disabled),
    };
    let former = match (&thresholds.admission_control, variable(ADMISSION_CONTROL)) {
        (Some(mode), _) => Some(("--admission-control", mode.clone())),
        (None, mode) => mode.map(|mode| (ADMISSION_CONTROL, mode)),
    };
    let warnings = former.map(|(name, mode)| instead(name, &mode, &settings.thresholds));
    Ok(Resolved {
        settings,
        warnings: warnings.into_iter().collect(),
    })
}

/// A variable of this process, for [`resolve`]. One that is not UTF-8 comes with
/// replacement characters, so that it is refused like any other text.
#[must_use]
pub fn process_environment(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned())
}

impl ThresholdArgs {
    fn resolve(
        &self,
        variable: &impl Fn(&'static str) -> Option<String>,
    ) -> Result<Thresholds, MonitorArgsError> {
        let mut resolved = Thresholds::default();
        let flags = [
            &self.active_decode_blocks_threshold,
            &self.active_prefill_tokens_threshold,
            &self.active_prefill_tokens_threshold_frac,
        ];
        for (threshold, flag) in Threshold::ALL.into_iter().zip(flags) {
            let name = threshold.environment();
            if let Some(set) = flag {
                threshold.copy(set, &mut resolved);
            } else if let Some(text) = variable(name) {
                let read = threshold.read(&text, &mut resolved);
                read.map_err(|error| MonitorArgsError::Variable {
                    variable: name,
                    error,
                })?;
            }
        }
        Ok(resolved)
    }
}

fn value(threshold: Threshold, text: &str) -> Result<Thresholds, OutOfRange> {
    let mut thresholds = Thresholds::default();
    threshold.read(text, &mut thresholds)?;
    Ok(thresholds)
}

fn help(threshold: Threshold) -> String {
    let meaning = match threshold {
        Threshold::DecodeBlocks => {
            "A rank is busy while more than this share of its KV blocks is in use"
        }
        Threshold::PrefillTokens => {
            "A rank is busy while more prompt tokens than this wait for their first output token"
        }
        Threshold::PrefillTokensFrac => {
            "The same as a multiple of the rank's max_num_batched_tokens"
        }
    };
    let (environment, range) = (threshold.environment(), threshold.range());
    format!("{meaning}. Unset by default [env: {environment}] [accepts: {range}, or none]")
}

/// What to set in the place of the former switch.
fn instead(name: &str, mode: &str, thresholds: &Thresholds) -> String {
    let mode = mode.trim();
    let said = match mode {
        "" => name.to_owned(),
        mode => format!("{name} {mode:?}"),
    };
    let said = format!("{said} has no effect any more: take it away");
    if mode.eq_ignore_ascii_case("none") || !thresholds.is_empty() {
        return format!("{said}. Each threshold that is set holds by itself.");
    }
    let [blocks, tokens, frac] = Threshold::ALL.map(Threshold::flag);
    format!(
        "{said}, and set the thresholds that are wanted, of which none is set: \
         {blocks}, {tokens}, {frac}. The former preset was 1.0, 10000000 and 64.0."
    )
}

fn is_true(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    ["1", "true", "yes", "on"].contains(&text.as_str())
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
