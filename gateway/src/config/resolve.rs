//! Which value each setting takes, and why.
//!
//! Sources are asked in a fixed order: flag, environment, older name of the
//! environment variable, default. The first valid value wins and nothing
//! behind it is read. An invalid environment value is reported and passed
//! over; an invalid flag is an error, because someone just typed it.

use std::fmt;

use tidegate::{LimitError, Limits, Settings};

use super::setting::{OutOfRange, Setting};

/// Where a limit in force came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flag,
    /// The environment variable of this name.
    Environment(&'static str),
    /// The environment variable of this older name.
    OlderName(&'static str),
    /// The engine's `max_num_seqs`.
    Reported,
    /// The built-in value that stands until the engine reports.
    Fallback,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag => f.write_str("flag"),
            Source::Environment(name) => write!(f, "environment {name}"),
            Source::OlderName(name) => write!(f, "environment {name} (older name)"),
            Source::Reported => f.write_str("the engine's max_num_seqs"),
            Source::Fallback => f.write_str("fallback, the engine has not reported"),
        }
    }
}

/// One setting's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effective {
    /// The setting.
    pub setting: Setting,
    /// The limit in force, requests per rank.
    pub value: u32,
    /// Where it came from.
    pub source: Source,
}

/// A value that was passed over. Displays its name, the value and what would
/// have been accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// An environment variable that is not a number in range.
    Environment {
        /// The variable's name.
        name: &'static str,
        /// The value as it was found, untrimmed.
        value: String,
        /// What is accepted instead.
        expected: OutOfRange,
    },
    /// A `max_num_seqs` from which no usable defaults follow.
    Report {
        /// The value reported.
        max_num_seqs: u32,
        /// The limit that would follow and is out of range.
        reason: LimitError,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Environment {
                name,
                value,
                expected,
            } => {
                write!(f, "{name}={} is ignored: {expected}", shortened(value))
            }
            Warning::Report {
                max_num_seqs,
                reason,
            } => {
                write!(f, "max_num_seqs={max_num_seqs} is ignored: {reason}")
            }
        }
    }
}

/// A value quoted and escaped for one line of a log, long ones cut.
fn shortened(value: &str) -> String {
    const SHOWN: usize = 64;
    let head: String = value.chars().take(SHOWN).collect();
    let cut = if head.len() < value.len() { "..." } else { "" };
    format!("{head:?}{cut}")
}

/// The limits in force, where each came from, and what was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What somebody set, as the gate takes it; the rest follows the engine's report.
    pub settings: Settings,
    /// One entry a setting, in the order of [`Setting::ALL`].
    pub limits: [Effective; 3],
    /// Values that were passed over, in the order in which they were met.
    pub warnings: Vec<Warning>,
}

impl Resolved {
    /// The outcome for one setting.
    pub fn get(&self, setting: Setting) -> Effective {
        self.limits[setting as usize]
    }

    /// Logs the warnings and, once, the limits with their sources.
    pub fn log(&self) {
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        let [requests, waiting, queue] = self.limits;
        tracing::info!(
            engine_request_limit = requests.value,
            engine_request_limit_source = %requests.source,
            engine_request_waiting_limit = waiting.value,
            engine_request_waiting_limit_source = %waiting.source,
            request_queue_limit = queue.value,
            request_queue_limit_source = %queue.source,
            "limits in force, per rank"
        );
    }
}

/// Resolves all settings.
///
/// `environment` looks a variable up by name; it is asked only for names that
/// nothing before them shadows. `max_num_seqs` is what the engine reported, if
/// it did. A report from which a limit out of range would follow is passed over
/// whole, as the gate does.
///
/// # Errors
/// A flag outside its range.
pub fn resolve(
    flags: &Settings,
    mut environment: impl FnMut(&'static str) -> Option<String>,
    max_num_seqs: Option<u32>,
) -> Result<Resolved, OutOfRange> {
    let mut warnings = Vec::new();
    let mut settings = Settings::default();
    let mut sources = [None; 3];
    for (setting, source) in Setting::ALL.into_iter().zip(&mut sources) {
        let found = match setting.of(flags) {
            Some(value) => Some((setting.check(value)?, Source::Flag)),
            None => from_environment(setting, &mut environment, &mut warnings),
        };
        *setting.of_mut(&mut settings) = found.map(|(value, _)| value);
        *source = found.map(|(_, source)| source);
    }
    let (limits, default) = defaults(settings, max_num_seqs, &mut warnings);
    let limits = Setting::ALL.map(|setting| Effective {
        setting,
        value: setting.in_force(&limits),
        source: sources[setting as usize].unwrap_or(default),
    });
    Ok(Resolved {
        settings,
        limits,
        warnings,
    })
}

/// Fills in what is not explicit, the way the gate does it, and says where
/// that came from.
fn defaults(
    settings: Settings,
    max_num_seqs: Option<u32>,
    warnings: &mut Vec<Warning>,
) -> (Limits, Source) {
    if let Some(max_num_seqs) = max_num_seqs {
        match settings.resolve(Some(max_num_seqs)) {
            Ok(limits) => return (limits, Source::Reported),
            Err(reason) => warnings.push(Warning::Report {
                max_num_seqs,
                reason,
            }),
        }
    }
    let fallback = settings.resolve(None);
    (
        fallback.expect("explicit values were checked, and the fallbacks are in range"),
        Source::Fallback,
    )
}

/// The first valid value among the setting's variables.
fn from_environment(
    setting: Setting,
    environment: &mut impl FnMut(&'static str) -> Option<String>,
    warnings: &mut Vec<Warning>,
) -> Option<(u32, Source)> {
    let newer = Some(Source::Environment(setting.environment()));
    let older = setting.older_name().map(Source::OlderName);
    for source in [newer, older].into_iter().flatten() {
        let (Source::Environment(name) | Source::OlderName(name)) = source else {
            continue;
        };
        let Some(text) = environment(name) else {
            continue;
        };
        match setting.parse(&text) {
            Ok(value) => return Some((value, source)),
            Err(expected) => {
                warnings.push(Warning::Environment {
                    name,
                    value: text,
                    expected,
                });
            }
        }
    }
    None
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
