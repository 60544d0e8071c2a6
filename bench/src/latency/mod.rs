//! Latency under open-loop load: arrivals keep to a schedule whatever happens,
//! and each is measured from the moment it was meant to begin. A gate that holds
//! one caller up therefore pays for all that should have come meanwhile.

mod engine;
mod hgrm;
mod plot;
mod schedule;
mod tally;
mod tasks;
mod threads;

pub use hgrm::write as write_hgrm;
pub use plot::{Panel, grid};
pub use tally::{Tally, quantiles};
pub use tasks::tasks;
pub use threads::threads;

use std::time::Duration;

/// One in so many of those that queue leaves again at once.
const CANCELS: u32 = 10;

/// Who calls, how much, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Threads; for tasks, what the limits are made for.
    pub callers: u32,
    /// Arrivals over what the engine can serve.
    pub load: f64,
    /// How long requests arrive.
    pub span: Duration,
    /// How long an admitted request runs; half of it until its first token.
    pub service: Duration,
    /// Of the schedules.
    pub seed: u64,
}

impl Shape {
    /// The gate's limits: R = W = Q, an eighth of the callers, so that those who
    /// wait leave enough others to keep the schedule.
    pub fn limit(&self) -> u32 {
        (self.callers / 8).max(1)
    }

    /// Arrivals a second, all callers together.
    pub fn rate(&self) -> f64 {
        self.load * f64::from(self.limit()) / self.service.as_secs_f64()
    }
}
