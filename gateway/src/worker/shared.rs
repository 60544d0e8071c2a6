//! What every request of one worker needs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tidegate::{Gate, Settings};
use tokio_util::sync::CancellationToken;

use super::args::WorkerType;
use super::config::WorkerConfig;
use super::error::ConfigError;
use super::metrics::Metrics;
use super::prompts::Prompts;
use super::routes::Routes;
use super::trust::Trust;
use crate::cli::sparing::Sparing;
use crate::cluster::counts::{Counts, Side};
use crate::page::Decisions;
use crate::policy::{Layer, Size};
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

/// What is counted for NATS.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) counts: Arc<Counts>,
    pub(super) prompts: Arc<Prompts>,
}

impl Shared {
    /// The parts of a worker that has just started.
    ///
    /// # Errors
    /// A limit is out of its range, for one rank or for all that flags name together; the
    /// prefix of its metrics is none; or, for an `https` engine, the system's trusted
    /// certificates cannot be read.
    pub(super) fn new(config: &WorkerConfig) -> io::Result<Self> {
        config
            .known_engine
            .check(config.settings)
            .map_err(ConfigError::from)?;
        let gate = Gate::builder()
            .settings(config.settings)
            .build()
            .map_err(ConfigError::from)?;
        let policy = config.policy.as_ref().map(|policy| {
            let size = Size::of(config.settings, 1, None);
            let settings = policy.settings.clone();
            Arc::new(Layer::new(gate.clone(), size, settings, policy.mode))
        });
        let routes = Routes::new(config.gate_routes.clone());
        Ok(Self {
            metrics: Metrics::new(
                gate.clone(),
                &config.metrics_prefix,
                config.worker_type.map(WorkerType::label),
                config.legacy_metrics,
                config.settings.engine_request_limit.is_some(),
            )?,
            gate,
            policy,
            engine: Engine::new(config.engine_url.clone())?,
            routes: match config.admin_listen {
                None => routes,
                Some(_) => routes.without_own(),
            },
            decisions: Arc::default(),
            drain: Arc::new(Drain::new()),
            budget: BufferBudget::new(config.buffer_budget),
            overload_status: config.overload_status,
            retry_after: config.retry_after,
            engine_idle_timeout: config.engine_idle_timeout,
            client_timeout: config.client_timeout,
            max_body: config.max_body,
            rank_from_body: config.rank_from_body,
            reuse: if config.keep_engine_connections {
                Reuse::Kept
            } else {
                Reuse::Never
            },
            trust: config.trust,
            explicit: config.settings,
            engine_warnings: Sparing::default(),
            ask_again: config.ask_again,
            draining: AtomicBool::new(false),
            cut: CancellationToken::new(),
            cluster: config.cluster.is_some().then(|| Cluster {
                counts: Arc::new(Counts::new(Side::Says)),
                prompts: Arc::default(),
            }),
        })
    }

    pub(super) fn is_draining(&self) -> bool {
        // Relaxed: a request that just misses it counts as an old one.
        self.draining.load(Ordering::Relaxed)
    }
}
