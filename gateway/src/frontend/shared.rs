//! What every request of one frontend needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;

use super::members::Members;
use super::metrics::Metrics;
use super::pick::Picker;
use crate::cli::sparing::Sparing;
use crate::monitor::Monitor;
use crate::page::Decisions;
use crate::proxy::budget::BufferBudget;
use crate::worker::Trust;
use crate::worker::routes::Routes;

/// One frontend's parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) members: Members,
    pub(super) monitor: Monitor,
    pub(super) picker: Picker,
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
    /// New requests are turned away.
    pub(super) draining: AtomicBool,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        // Relaxed: a request that just misses it counts as an old one.
        self.draining.load(Ordering::Relaxed)
    }
}
