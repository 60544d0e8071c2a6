//! What a policy is set to: the values behind `policy.toml`.

use std::time::Duration;

use crate::class::{Class, Classes, Slo};
use crate::fairness::{self, By};
use crate::{cold_start, fill, headroom, kept, limit, profile, published, sampler, tuner};

/// A policy's settings, all in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The share of the gate's limit to use, above 0 and at most 1.
    pub utilisation_target: f64,
    /// How often the engine is sampled.
    pub sample_interval: Duration,
    /// The age at which a sample is not decided by.
    pub stale_after: Duration,
    /// The engine takes its device memory when it starts.
    pub preallocates: bool,
    /// How often the latency tables are rebuilt.
    pub rebuild: Duration,
    /// When the limit is lowered for a cold engine, and how far.
    pub cold_start: cold_start::Settings,
    /// The share of the batch below which it is filled, 0 to 1.
    pub fill_below: f64,
    /// The share of memory from which critical classes go first, 0 to 1.
    pub critical_from: f64,
    /// How the utilisation target is tuned.
    pub tuner: tuner::Settings,
    /// Whether the time that a request takes inside the engine is expected to be what
    /// it was before, and judged.
    pub expects: bool,
    /// What is shared in proportion to the classes' weights.
    pub fair_by: By,
    /// The least share of admissions of a class that waits, 0 to 1.
    pub floor: f64,
    /// The period of the credit of a class that comes back; 0 gives none.
    pub credit: Duration,
    /// For how long room is kept for a class that needed it; 0 keeps none.
    pub keep_room: Duration,
    /// The classes, and the ways to one.
    pub classes: Classes,
}

impl Settings {
    /// The defaults of everything, for these classes.
    #[must_use]
    pub fn of(classes: Classes) -> Self {
        Settings {
            utilisation_target: limit::TARGET,
            sample_interval: sampler::INTERVAL,
            stale_after: published::STALE_AFTER,
            preallocates: true,
            rebuild: profile::REBUILD,
            cold_start: cold_start::Settings::default(),
            fill_below: fill::FILL_BELOW,
            critical_from: headroom::CRITICAL_FROM,
            tuner: tuner::Settings::default(),
            expects: true,
            fair_by: By::default(),
            floor: fairness::FLOOR,
            credit: fairness::CREDIT,
            keep_room: kept::PERIOD,
            classes,
        }
    }

    /// The same before many engines, none of which is known: who is next and for how
    /// long is waited counts, and nothing of one engine's memory, batch, warmth, limit
    /// or latency.
    #[must_use]
    pub fn before_many(self) -> Self {
        Settings {
            utilisation_target: limit::WHOLE,
            cold_start: cold_start::Settings {
                idle_ms: f64::INFINITY,
                ..self.cold_start
            },
            fill_below: 0.0,
            critical_from: 1.0,
            tuner: tuner::Settings {
                enabled: false,
                ..self.tuner
            },
            expects: false,
            keep_room: Duration::ZERO,
            ..self
        }
    }
}

/// The three classes that there are without a file's own.
#[must_use]
pub fn default_classes() -> Vec<Class> {
    let class = |name: &str, priority, weight, first_token_ms, queue_share, timeout_ms| Class {
        name: name.to_owned(),
        priority,
        weight,
        slo: Slo {
            first_token_ms,
            end_to_end_ms: None,
        },
        queue_share,
        queue_timeout: Duration::from_millis(timeout_ms),
        critical: name == "gold",
        rate: None,
    };
    vec![
        class("gold", 2, 4.0, 500.0, 0.7, 150),
        class("silver", 1, 2.0, 1_000.0, 0.5, 100),
        class("bronze", 1, 1.0, 2_000.0, 0.3, 50),
    ]
}

/// The class of requests that say nothing, without a file's own.
pub const DEFAULT_CLASS: &str = "silver";
