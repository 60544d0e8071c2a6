//! What a frontend has counted, for those in the same process.

use std::sync::Arc;

use super::hops::Ended;
use super::record::Outcome;
use super::shared::Shared;

/// The counts of one frontend, which can be read when it is gone. A cheap clone.
#[derive(Clone, Debug)]
pub struct Tallies(pub(super) Arc<Shared>);

impl Tallies {
    /// Requests that ended so.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.0.metrics.total(outcome)
    }

    /// Requests that ended, in any way.
    #[must_use]
    pub fn all(&self) -> u64 {
        Outcome::ALL
            .into_iter()
            .map(|outcome| self.ended(outcome))
            .sum()
    }

    /// Tries at workers that ended so. Those at workers that were taken out are not
    /// among them.
    #[must_use]
    pub fn tries(&self, ended: Ended) -> u64 {
        let members = self.0.members.all();
        members.iter().map(|member| member.hops.of(ended)).sum()
    }
}
