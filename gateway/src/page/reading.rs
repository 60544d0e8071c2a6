//! Everything that is told at one moment.

use serde::Serialize;

use super::front::Front;
use super::gate::Gate;
use crate::scrape::exposition::Page;

/// What metrics pages tell: of a worker its gate; of a frontend the frontend, and
/// the gates of those workers that have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reading {
    /// The gates.
    pub gates: Vec<Gate>,
    /// The frontend.
    pub front: Option<Front>,
}

impl Reading {
    /// What a server's own page tells. Neither gate nor frontend: nothing.
    #[must_use]
    pub fn of(page: &Page) -> Self {
        Self {
            gates: Gate::of(page, "").into_iter().collect(),
            front: Front::of(page),
        }
    }

    /// Whether it tells nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.front.is_none()
    }
}
