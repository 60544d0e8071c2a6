//! The limit flags of a command.

use std::ffi::OsString;

use clap::Args;

use tidegate::Settings;

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
