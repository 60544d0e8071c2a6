//! The file as it is written, and the settings that it amounts to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::classes::{ClassTable, Named};
use super::error::FileError;
use super::values;
use crate::fairness::{self, By};
use crate::settings::Settings;
use crate::{cold_start, fill, headroom, kept, limit, profile, published, sampler, tuner};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    #[serde(deserialize_with = "values::share_above_0")]
    utilisation_target: f64,
    default_class: Option<Spanned<String>>,
    state: State,
    profile: Profile,
    cold_start: ColdStart,
    batch: Batch,
    memory: Memory,
    fairness: Fairness,
    tuner: Tuner,
    class: Vec<Spanned<ClassTable>>,
    api_keys: BTreeMap<String, Spanned<String>>,
    models: BTreeMap<String, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct State {
    #[serde(deserialize_with = "values::interval_ms")]
    sample_interval_ms: Duration,
    #[serde(deserialize_with = "values::interval_ms")]
    stale_after_ms: Duration,
    engine_preallocates: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Profile {
    #[serde(deserialize_with = "values::interval_ms")]
    rebuild_ms: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ColdStart {
    #[serde(deserialize_with = "values::plain_ms")]
    idle_ms: f64,
    #[serde(deserialize_with = "values::time_ms")]
    guard_ms: Duration,
    #[serde(deserialize_with = "values::plain_ms")]
    cold_ms: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Batch {
    #[serde(deserialize_with = "values::share")]
    fill_below: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Memory {
    #[serde(deserialize_with = "values::share")]
    critical_from: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fairness {
    by: ByName,
    #[serde(deserialize_with = "values::share")]
    floor: f64,
    #[serde(deserialize_with = "values::time_ms")]
    credit_ms: Duration,
    #[serde(deserialize_with = "values::time_ms")]
    keep_room_ms: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tuner {
    enabled: bool,
    #[serde(deserialize_with = "values::interval_ms")]
    window_ms: Duration,
    #[serde(deserialize_with = "values::share")]
    late: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ByName {
    Tokens,
    Requests,
}

impl Default for File {
    fn default() -> Self {
        File {
            utilisation_target: limit::TARGET,
            default_class: None,
            state: State::default(),
            profile: Profile::default(),
            cold_start: ColdStart::default(),
            batch: Batch::default(),
            memory: Memory::default(),
            fairness: Fairness::default(),
            tuner: Tuner::default(),
            class: Vec::new(),
            api_keys: BTreeMap::new(),
            models: BTreeMap::new(),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State {
            sample_interval_ms: sampler::INTERVAL,
            stale_after_ms: published::STALE_AFTER,
            engine_preallocates: true,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            rebuild_ms: profile::REBUILD,
        }
    }
}

impl Default for ColdStart {
    fn default() -> Self {
        let cold_start::Settings {
            idle_ms,
            guard,
            cold_ms,
        } = cold_start::Settings::default();
        ColdStart {
            idle_ms,
            guard_ms: guard,
            cold_ms,
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            fill_below: fill::FILL_BELOW,
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            critical_from: headroom::CRITICAL_FROM,
        }
    }
}

impl Default for Fairness {
    fn default() -> Self {
        Fairness {
            by: ByName::Tokens,
            floor: fairness::FLOOR,
            credit_ms: fairness::CREDIT,
            keep_room_ms: kept::PERIOD,
        }
    }
}

impl Default for Tuner {
    fn default() -> Self {
        let tuner::Settings {
            window,
            late,
            enabled,
        } = tuner::Settings::default();
        Tuner {
            enabled,
            window_ms: window,
            late,
        }
    }
}

impl File {
    /// What the file amounts to.
    pub(super) fn settings(self, text: &str) -> Result<Settings, FileError> {
        Ok(Settings {
            utilisation_target: self.utilisation_target,
            sample_interval: self.state.sample_interval_ms,
            stale_after: self.state.stale_after_ms,
            preallocates: self.state.engine_preallocates,
            rebuild: self.profile.rebuild_ms,
            cold_start: cold_start::Settings {
                idle_ms: self.cold_start.idle_ms,
                guard: self.cold_start.guard_ms,
                cold_ms: self.cold_start.cold_ms,
            },
            fill_below: self.batch.fill_below,
            critical_from: self.memory.critical_from,
            tuner: tuner::Settings {
                window: self.tuner.window_ms,
                late: self.tuner.late,
                enabled: self.tuner.enabled,
            },
            expects: true,
            fair_by: match self.fairness.by {
                ByName::Tokens => By::Tokens,
                ByName::Requests => By::Requests,
            },
            floor: self.fairness.floor,
            credit: self.fairness.credit_ms,
            keep_room: self.fairness.keep_room_ms,
            classes: Named {
                default: self.default_class,
                classes: self.class,
                api_keys: self.api_keys,
                models: self.models,
            }
            .classes(text)?,
        })
    }
}
