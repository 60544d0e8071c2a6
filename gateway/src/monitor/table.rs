//! The thresholds in force, by model.

use std::collections::BTreeMap;

use arc_swap::ArcSwap;

use super::threshold::Thresholds;

/// The thresholds of every model. A model has the defaults until its own are set;
/// then it has those, whole, whatever the defaults are. Readers never wait.
#[derive(Debug)]
pub(super) struct Table {
    defaults: Thresholds,
    own: ArcSwap<BTreeMap<String, Thresholds>>,
}

impl Table {
    /// With these for each model.
    pub fn new(defaults: Thresholds) -> Self {
        Self {
            defaults,
            own: ArcSwap::default(),
        }
    }

    /// Those of a model.
    pub fn of(&self, model: &str) -> Thresholds {
        self.own_of(model).unwrap_or(self.defaults)
    }

    /// Those that were set for this model.
    pub fn own_of(&self, model: &str) -> Option<Thresholds> {
        self.own.load().get(model).copied()
    }

    /// Models with thresholds of their own, in order.
    pub fn models(&self) -> Vec<String> {
        self.own.load().keys().cloned().collect()
    }

    /// Changes a model's thresholds at once, and says what they are then.
    pub fn change(&self, model: &str, change: impl Fn(&mut Thresholds)) -> Thresholds {
        let changed = |own: &BTreeMap<String, Thresholds>| {
            let mut own = own.clone();
            change(own.entry(model.to_owned()).or_insert(self.defaults));
            own
        };
        self.own.rcu(|own| changed(own));
        self.of(model)
    }
}
