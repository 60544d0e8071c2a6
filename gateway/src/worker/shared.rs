//! What every request of one worker needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tidegate::{Gate, Settings};
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::routes::Routes;
use super::telling::Cluster;
use super::trust::Trust;
use crate::cli::sparing::Sparing;
use crate::page::Decisions;
use crate::policy::Layer;
use crate::proxy::budget::BufferBudget;
use crate::proxy::engine::{Engine, Reuse};
use crate::server::drain::Drain;

/// One worker's parts.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) gate: Gate,
    /// What decides before the gate does, if anything.
    pub(super) policy: Option<Arc<Layer>>,
    pub(super) engine: Engine,
    pub(super) routes: Routes,
    pub(super) metrics: Metrics,
    /// The last decisions, for the page.
    pub(super) decisions: Arc<Decisions>,
    pub(super) drain: Arc<Drain>,
    pub(super) budget: BufferBudget,
    pub(super) overload_status: StatusCode,
    pub(super) retry_after: bool,
    pub(super) engine_idle_timeout: Option<Duration>,
    pub(super) client_timeout: Duration,
    /// Bytes that the body of a gated request may have.
    pub(super) max_body: u64,
    pub(super) rank_from_body: bool,
    /// On which connections gated requests go out.
    pub(super) reuse: Reuse,
    pub(super) trust: Trust,
    /// Limits that someone set, which no report moves.
    pub(super) explicit: Settings,
    /// Keeps what requests without an answer say to a bearable amount.
    pub(super) engine_warnings: Sparing,
    /// How often an engine whose size is known is asked for it again.
    pub(super) ask_again: Duration,
    /// What is counted for NATS, if it is used.
    pub(super) cluster: Option<Cluster>,
    /// New gated requests are turned away.
    pub(super) draining: AtomicBool,
    /// Requests without an answer get a last one: there will be none from the engine.
    pub(super) cut: CancellationToken,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        // Relaxed: a request that just misses it counts as an old one.
        self.draining.load(Ordering::Relaxed)
    }
}
