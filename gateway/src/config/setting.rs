//! The three settings of the gate, as a table.

use std::ops::RangeInclusive;

use thiserror::Error;

use tidegate::limits::{
    FALLBACK_ENGINE_LIMIT, FALLBACK_QUEUE_LIMIT, MAX_ENGINE_REQUEST_LIMIT,
    MAX_ENGINE_REQUEST_WAITING_LIMIT, MAX_REQUEST_QUEUE_LIMIT,
};
use tidegate::{Limit, Limits, Settings};

/// One of the gate's settings. All are counts of requests, per data-parallel
/// rank; the worker's totals are these times the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Requests inside the engine at once, streaming ones included.
    EngineRequestLimit,
    /// Requests inside the engine whose first token has not come yet.
    EngineRequestWaitingLimit,
    /// Requests held before the engine; 0 means that none is held.
    RequestQueueLimit,
}

impl Setting {
    /// Every setting, in the order in which they are shown.
    pub const ALL: [Setting; 3] = [
        Setting::EngineRequestLimit,
        Setting::EngineRequestWaitingLimit,
        Setting::RequestQueueLimit,
    ];

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Setting::EngineRequestLimit => "engine request limit",
            Setting::EngineRequestWaitingLimit => "engine request waiting limit",
            Setting::RequestQueueLimit => "request queue limit",
        }
    }

    /// The name in JSON output and log fields.
    pub fn key(self) -> &'static str {
        match self {
            Setting::EngineRequestLimit => "engine_request_limit",
            Setting::EngineRequestWaitingLimit => "engine_request_waiting_limit",
            Setting::RequestQueueLimit => "request_queue_limit",
        }
    }

    /// What the limit bounds, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Setting::EngineRequestLimit => "requests in the engine at once, streaming included",
            Setting::EngineRequestWaitingLimit => {
                "the part of them whose first token has not come yet"
            }
            Setting::RequestQueueLimit => "requests held before the engine, first in, first out",
        }
    }

    /// The command-line flag, with its dashes.
    pub fn flag(self) -> &'static str {
        match self {
            Setting::EngineRequestLimit => "--engine-request-limit",
            Setting::EngineRequestWaitingLimit => "--engine-request-waiting-limit",
            Setting::RequestQueueLimit => "--request-queue-limit",
        }
    }

    /// The environment variable that is read when the flag is absent.
    pub fn environment(self) -> &'static str {
        match self {
            Setting::EngineRequestLimit => "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT",
            Setting::EngineRequestWaitingLimit => {
                "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_WAITING_LIMIT"
            }
            Setting::RequestQueueLimit => "DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT",
        }
    }

    /// An older environment variable, read when the newer one gives nothing.
    /// The waiting limit has none: the request limit's older name never feeds it.
    pub fn older_name(self) -> Option<&'static str> {
        match self {
            Setting::EngineRequestLimit => Some("DYN_ENGINE_REQUEST_LIMIT"),
            Setting::EngineRequestWaitingLimit => None,
            Setting::RequestQueueLimit => Some("DYN_DYNAMO_REQUEST_QUEUE_LIMIT"),
        }
    }

    /// The values that are accepted, per rank.
    pub fn range(self) -> RangeInclusive<u32> {
        match self {
            Setting::EngineRequestLimit => 1..=MAX_ENGINE_REQUEST_LIMIT,
            Setting::EngineRequestWaitingLimit => 1..=MAX_ENGINE_REQUEST_WAITING_LIMIT,
            Setting::RequestQueueLimit => 0..=MAX_REQUEST_QUEUE_LIMIT,
        }
    }

    /// The default per rank while the engine has reported nothing.
    pub fn fallback(self) -> u32 {
        match self {
            Setting::EngineRequestLimit | Setting::EngineRequestWaitingLimit => {
                FALLBACK_ENGINE_LIMIT
            }
            Setting::RequestQueueLimit => FALLBACK_QUEUE_LIMIT,
        }
    }

    /// This setting's value among explicit ones.
    pub fn of(self, settings: &Settings) -> Option<u32> {
        match self {
            Setting::EngineRequestLimit => settings.engine_request_limit,
            Setting::EngineRequestWaitingLimit => settings.engine_request_waiting_limit,
            Setting::RequestQueueLimit => settings.request_queue_limit,
        }
    }

    /// The same among explicit ones, to change it.
    pub fn of_mut(self, settings: &mut Settings) -> &mut Option<u32> {
        match self {
            Setting::EngineRequestLimit => &mut settings.engine_request_limit,
            Setting::EngineRequestWaitingLimit => &mut settings.engine_request_waiting_limit,
            Setting::RequestQueueLimit => &mut settings.request_queue_limit,
        }
    }

    /// This setting's value among limits in force, per rank.
    pub fn in_force(self, limits: &Limits) -> u32 {
        limits.get(match self {
            Setting::EngineRequestLimit => Limit::EngineRequest,
            Setting::EngineRequestWaitingLimit => Limit::EngineRequestWaiting,
            Setting::RequestQueueLimit => Limit::RequestQueue,
        })
    }

    /// Reads a value as a person writes it, whitespace around it allowed.
    ///
    /// # Errors
    /// Anything but an integer of [`Setting::range`].
    pub fn parse(self, text: &str) -> Result<u32, OutOfRange> {
        text.trim()
            .parse()
            .ok()
            .filter(|value| self.range().contains(value))
            .ok_or(OutOfRange { setting: self })
    }

    /// Checks a value that is a number already.
    ///
    /// # Errors
    /// A number outside [`Setting::range`].
    pub fn check(self, value: u32) -> Result<u32, OutOfRange> {
        if self.range().contains(&value) {
            Ok(value)
        } else {
            Err(OutOfRange { setting: self })
        }
    }

    /// The flag's help: meaning, default, environment and range.
    pub(super) fn help(self) -> String {
        let default = match self {
            Setting::EngineRequestLimit | Setting::EngineRequestWaitingLimit => {
                "the engine's max_num_seqs"
            }
            Setting::RequestQueueLimit => "2 x the engine's max_num_seqs",
        };
        let (low, high) = (
            self.range().start().to_owned(),
            self.range().end().to_owned(),
        );
        let older = match self.older_name() {
            Some(name) => format!(", or the older {name}"),
            None => String::new(),
        };
        format!(
            "Per rank: {} [default: {default}, {} until it tells] [env: {}{older}] [accepts: {low} to {high}]",
            self.meaning(),
            self.fallback(),
            self.environment(),
        )
    }
}

/// A value that a setting does not accept; displays what it does accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the {} is an integer from {} to {}",
    setting.title(), setting.range().start(), setting.range().end()
)]
pub struct OutOfRange {
    /// The setting that refused the value.
    pub setting: Setting,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_the_fallbacks_and_their_own_ends() {
        for setting in Setting::ALL {
            let range = setting.range();
            assert!(range.contains(&setting.fallback()), "{setting:?}");
            for end in [*range.start(), *range.end()] {
                assert_eq!(setting.parse(&end.to_string()), Ok(end));
                assert_eq!(setting.check(end), Ok(end));
            }
            assert!(
                setting
                    .parse(&(u64::from(*range.end()) + 1).to_string())
                    .is_err()
            );
        }
    }

    #[test]
    fn zero_is_a_queue_limit_and_no_engine_limit() {
        assert_eq!(Setting::RequestQueueLimit.parse("0"), Ok(0));
        assert!(Setting::EngineRequestLimit.parse("0").is_err());
        assert!(Setting::EngineRequestWaitingLimit.check(0).is_err());
    }

    #[test]
    fn values_are_trimmed_and_whole() {
        assert_eq!(Setting::EngineRequestLimit.parse(" 7\t\n"), Ok(7));
        for text in [
            "",
            " ",
            "-1",
            "1.5",
            "1e3",
            "0x10",
            "1_000",
            "7 8",
            "seven",
            "99999999999999999999",
        ] {
            assert!(Setting::EngineRequestLimit.parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_setting_finds_itself_among_all() {
        for (index, setting) in (1_u32..).zip(Setting::ALL) {
            let mut settings = Settings::default();
            *setting.of_mut(&mut settings) = Some(index);
            assert_eq!(setting.of(&settings), Some(index));
            let limits = settings.resolve(Some(100)).expect("in range");
            assert_eq!(setting.in_force(&limits), index);
        }
    }

    #[test]
    fn the_error_says_what_is_accepted() {
        let text = Setting::EngineRequestLimit
            .parse("no")
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("the engine request limit is an integer from 1 to "),
            "{text}"
        );
    }
}
