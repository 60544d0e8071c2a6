//! What is shown of a server at one moment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::decisions::Decision;
use super::reading::Reading;
use super::refusals::Refusals;

/// Everything that is shown of a server at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// This program's version.
    pub version: &'static str,
    /// Time on the server's own clock, in milliseconds.
    pub at_ms: u64,
    /// What quantiles are taken over, in seconds.
    pub window_seconds: u64,
    /// The newest reading.
    #[serde(flatten)]
    pub reading: Reading,
    /// The first axis: how full is the device?
    pub gpu: Gpu,
    /// The second: how full is the gate?
    pub concurrency: Concurrency,
    /// The third: what do clients get?
    pub quality: Quality,
    /// Refusals by reason, the most frequent first.
    pub refusals: Vec<Refusals>,
    /// The last decisions, newest first.
    pub decisions: Vec<Decision>,
}

/// Saturation of the GPU: of several, the fullest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gpu {
    /// Shares in use, 0 to 1, by what they are of.
    pub shares: BTreeMap<String, f64>,
    /// Why nothing is known, if nothing is.
    pub unknown: Option<&'static str>,
}

/// Saturation of concurrency, over all gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Concurrency {
    /// Requests in the engines.
    pub running: u64,
    /// As many as may be.
    pub running_limit: u64,
    /// The part whose first token has not come.
    pub waiting: u64,
    /// As many as may be.
    pub waiting_limit: u64,
    /// Requests in the gates' queues.
    pub queued: u64,
    /// As many as may be.
    pub queue_limit: u64,
    /// Requests that policies hold.
    pub held: u64,
    /// Some gate runs on limits that nobody set and no engine told.
    pub fallback: bool,
    /// Requests per second that arrived.
    pub received_per_second: f64,
    /// Requests per second that were admitted.
    pub admitted_per_second: f64,
    /// Requests per second that were refused.
    pub refused_per_second: f64,
}

/// Quality of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Answers per second that count: within their class's promise where a policy
    /// knows one, else any.
    pub goodput: f64,
    /// Share of requests that got one; `None` where there were none.
    pub attainment: Option<f64>,
    /// What the two count.
    pub counts: Counts,
    /// Seconds to the first token: median, 99 and 99.9 of a hundred.
    pub first_token: Option<[f64; 3]>,
    /// Seconds in the gate's queue: the same.
    pub queue_wait: Option<[f64; 3]>,
    /// Admissions out of the queue that it was taken of.
    pub queue_waits: u64,
}

/// What goodput counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Requests that were admitted: nothing is known of answers.
    #[default]
    Admitted,
    /// Requests that were answered.
    Answered,
    /// Answers within their class's promise.
    Promise,
}
