//! What every request of one frontend needs.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::members::Members;
use super::metrics::Metrics;
use super::pick::Picker;
use super::policies::Policies;
use crate::cli::sparing::Sparing;
use crate::cluster::Counts;
use crate::monitor::Monitor;
use crate::page::Decisions;
use crate::proxy::budget::BufferBudget;
use crate::proxy::engine::EngineUrl;
use crate::worker::Trust;
use crate::worker::routes::Routes;

/// One frontend's parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) members: Arc<Members>,
    pub(super) monitor: Monitor,
    pub(super) picker: Arc<Picker>,
    pub(super) metrics: Arc<Metrics>,
    /// The last decisions, for the page.
    pub(super) decisions: Arc<Decisions>,
    /// Knows what `--route` adds.
    pub(super) routes: Routes,
    /// For bodies that are held until their answers begin.
    pub(super) budget: BufferBudget,
    /// Bytes that a body may have.
    pub(super) max_body: u64,
    pub(super) overload_status: StatusCode,
    pub(super) retry_after: bool,
    pub(super) worker_idle_timeout: Option<Duration>,
    pub(super) client_timeout: Duration,
    pub(super) trust: Trust,
    /// The own routes have a port of their own.
    pub(super) own_apart: bool,
    /// Keeps what requests without an answer say to a bearable amount.
    pub(super) worker_warnings: Sparing,
    /// The workers of `--worker`.
    pub(super) configured: Vec<EngineUrl>,
    /// What is counted of NATS, if it is used.
    pub(super) cluster: Option<Arc<Counts>>,
    /// New requests are turned away.
    pub(super) draining: CancellationToken,
    /// Where requests wait for workers, if there is a policy.
    pub(super) policy: Option<Policies>,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}
