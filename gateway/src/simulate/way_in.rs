//! Which door stands before the engine.

use tidegate_policy::class::Classes;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

use super::door::{Door, Open};
use super::gate_door::GateDoor;
use super::policy_door::PolicyDoor;

/// What stands before the engine.
#[derive(Clone, Debug)]
pub enum WayIn {
    /// Nothing: every request enters at once.
    Open,
    /// The gate, with these limits.
    Gate(tidegate::Settings),
    /// The policy, and behind it the gate with these limits.
    Policy(Box<Settings>, tidegate::Settings, Mode),
}

impl WayIn {
    /// The door, before an engine whose batch has this size. Limits that cannot
    /// be represented fall back to those that follow the engine's size.
    pub(super) fn door(&self, batch: u32) -> Box<dyn Door> {
        match self {
            WayIn::Open => Box::new(Open),
            WayIn::Gate(limits) => Box::new(GateDoor::new(*limits, batch)),
            WayIn::Policy(settings, limits, mode) => {
                let gate = GateDoor::new(*limits, batch);
                Box::new(PolicyDoor::new((**settings).clone(), gate, *mode, batch))
            }
        }
    }

    /// The classes by which it decides, if it does.
    pub(super) fn classes(&self) -> Option<&Classes> {
        match self {
            WayIn::Policy(settings, ..) => Some(&settings.classes),
            WayIn::Open | WayIn::Gate(_) => None,
        }
    }
}
