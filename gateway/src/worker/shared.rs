//! What every request of one worker needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tidegate::Gate;

use super::metrics::Metrics;
use super::routes::Routes;
use super::slot::Drain;
use crate::proxy::body::BufferBudget;
use crate::proxy::engine::Engine;

/// One worker's parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gate: Gate,
    pub(super) engine: Engine,
    pub(super) routes: Routes,
    pub(super) metrics: Metrics,
    pub(super) drain: Arc<Drain>,
    pub(super) budget: BufferBudget,
    pub(super) overload_status: StatusCode,
    pub(super) retry_after: bool,
    pub(super) engine_idle_timeout: Option<Duration>,
    /// Someone set the engine request limit: the fallback is not in force.
    pub(super) explicit_engine_limit: bool,
    /// New gated requests are turned away.
    pub(super) draining: AtomicBool,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        // Relaxed: a request that just misses it counts as an old one.
        self.draining.load(Ordering::Relaxed)
    }
}
