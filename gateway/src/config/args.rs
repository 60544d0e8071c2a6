//! The flags that several commands take: the limits, and the size that they follow.

use std::ffi::OsString;

use clap::Args;

use tidegate::Settings;
use tidegate::limits::{
    MAX_ENGINE_REQUEST_LIMIT, MAX_ENGINE_REQUEST_WAITING_LIMIT, MAX_REQUEST_QUEUE_LIMIT,
};

use super::resolve::{Resolved, resolve};
use super::setting::{OutOfRange, Setting};

/// The three limit flags, for `#[command(flatten)]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Requests inside one rank of the engine at once.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help = Setting::EngineRequestLimit.help(),
        value_parser = |text: &str| Setting::EngineRequestLimit.parse(text)
    )]
    pub engine_request_limit: Option<u32>,

    /// Requests inside one rank whose first token has not come.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help = Setting::EngineRequestWaitingLimit.help(),
        value_parser = |text: &str| Setting::EngineRequestWaitingLimit.parse(text)
    )]
    pub engine_request_waiting_limit: Option<u32>,

    /// Requests held before one rank of the engine.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help = Setting::RequestQueueLimit.help(),
        value_parser = |text: &str| Setting::RequestQueueLimit.parse(text)
    )]
    pub request_queue_limit: Option<u32>,
}

impl LimitArgs {
    /// The flags as plain numbers.
    pub fn flags(&self) -> Settings {
        Settings {
            engine_request_limit: self.engine_request_limit,
            engine_request_waiting_limit: self.engine_request_waiting_limit,
            request_queue_limit: self.request_queue_limit,
        }
    }

    /// Resolves against this process's environment.
    ///
    /// # Errors
    /// A flag outside its range, which only code that builds the arguments
    /// itself can bring about.
    pub fn resolve(&self, max_num_seqs: Option<u32>) -> Result<Resolved, OutOfRange> {
        resolve(&self.flags(), process_environment, max_num_seqs)
    }
}

/// A variable of this process. One that is not UTF-8 comes with replacement
/// characters, so that it is warned about like any other text.
fn process_environment(name: &str) -> Option<String> {
    let value: OsString = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned())
}

/// Reads an engine's `max_num_seqs` from a flag. Defaults that are in range
/// must follow from it, whatever else is set.
///
/// # Errors
/// A text that names the range.
pub fn parse_max_num_seqs(text: &str) -> Result<u32, String> {
    let most = MAX_ENGINE_REQUEST_LIMIT
        .min(MAX_ENGINE_REQUEST_WAITING_LIMIT)
        .min(MAX_REQUEST_QUEUE_LIMIT / 2);
    let number = text.trim().parse().ok();
    number
        .filter(|value| (1..=most).contains(value))
        .ok_or_else(|| format!("max_num_seqs is an integer from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_must_give_limits_in_range() {
        assert_eq!(parse_max_num_seqs(" 256 "), Ok(256));
        for text in ["0", "-1", "", "4294967295", "x"] {
            let error = parse_max_num_seqs(text).unwrap_err();
            assert!(error.contains("from 1 to "), "{error}");
        }
    }
}
