//! The file's classes, and what names them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::error::FileError;
use super::values;
use crate::class::{Class, ClassError, Classes, Slo};
use crate::rate::Rate;
use crate::settings::{DEFAULT_CLASS, default_classes};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassTable {
    name: String,
    #[serde(default, deserialize_with = "values::priority")]
    priority: u8,
    #[serde(default = "one", deserialize_with = "values::weight")]
    weight: f64,
    #[serde(deserialize_with = "values::promise_ms")]
    first_token_ms: f64,
    #[serde(default, deserialize_with = "values::some_promise_ms")]
    end_to_end_ms: Option<f64>,
    #[serde(default = "half", deserialize_with = "values::share")]
    queue_share: f64,
    #[serde(default = "short", deserialize_with = "values::time_ms")]
    queue_timeout_ms: Duration,
    #[serde(default)]
    critical: bool,
    rate: Option<RateTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateTable {
    #[serde(deserialize_with = "values::per_second")]
    per_second: f64,
    #[serde(deserialize_with = "values::burst")]
    burst: u32,
}

fn one() -> f64 {
    1.0
}

fn half() -> f64 {
    0.5
}

fn short() -> Duration {
    Duration::from_millis(100)
}

/// The parts of a file that define or name classes.
pub(super) struct Named {
    pub default: Option<Spanned<String>>,
    pub classes: Vec<Spanned<ClassTable>>,
    pub api_keys: BTreeMap<String, Spanned<String>>,
    pub models: BTreeMap<String, Spanned<String>>,
}

impl Named {
    /// The classes, with everything that is named found among them.
    pub(super) fn classes(self, text: &str) -> Result<Classes, FileError> {
        let mut all: Vec<Class> = Vec::new();
        for table in &self.classes {
            let wrong = |message| FileError::at(text, Some(table.span()), message);
            let class = table.get_ref().class().map_err(wrong)?;
            if all.iter().any(|before| before.name == class.name) {
                return Err(wrong(ClassError::Twice(class.name).to_string()));
            }
            all.push(class);
        }
        let own = !all.is_empty();
        let all = if own { all } else { default_classes() };
        let default = match &self.default {
            Some(named) => named.get_ref().clone(),
            // Without a word the first of the file's own.
            None if own => all[0].name.clone(),
            None => DEFAULT_CLASS.to_owned(),
        };
        let span = self.default.as_ref().map(Spanned::span);
        let mut classes = Classes::new(all, &default)
            .map_err(|error| FileError::at(text, span, error.to_string()))?;
        for (key, class) in &self.api_keys {
            let mapped = classes.map_key(key, class.get_ref());
            mapped.map_err(|error| FileError::at(text, Some(class.span()), error.to_string()))?;
        }
        for (model, class) in &self.models {
            let mapped = classes.map_model(model, class.get_ref());
            mapped.map_err(|error| FileError::at(text, Some(class.span()), error.to_string()))?;
        }
        Ok(classes)
    }
}

impl ClassTable {
    /// The class, or what is wrong with its values taken together.
    fn class(&self) -> Result<Class, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(plain) {
            return Err(format!(
                "the class name {:?} is not accepted: expected 1 to 64 letters, digits, - or _",
                self.name
            ));
        }
        if let Some(end) = self.end_to_end_ms.filter(|end| *end < self.first_token_ms) {
            return Err(format!(
                "class {}: end_to_end_ms is {end}, expected at least first_token_ms, {}",
                self.name, self.first_token_ms
            ));
        }
        Ok(Class {
            name: self.name.clone(),
            priority: self.priority,
            weight: self.weight,
            slo: Slo {
                first_token_ms: self.first_token_ms,
                end_to_end_ms: self.end_to_end_ms,
            },
            queue_share: self.queue_share,
            queue_timeout: self.queue_timeout_ms,
            critical: self.critical,
            rate: self.rate.as_ref().map(RateTable::rate),
        })
    }
}

impl RateTable {
    fn rate(&self) -> Rate {
        Rate {
            per_second: self.per_second,
            burst: NonZeroU32::new(self.burst).unwrap_or(NonZeroU32::MIN),
        }
    }
}
