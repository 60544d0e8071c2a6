//! What every request of one frontend needs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::config::FrontendConfig;
use super::members::Members;
use super::metrics::Metrics;
use super::pick::Picker;
use super::policies::Policies;
use super::workers::Workers;
use crate::cli::sparing::Sparing;
use crate::cluster::counts::{Counts, Side};
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
    /// The parts of a frontend that has just started, without its workers.
    ///
    /// # Errors
    /// The metrics could not be set up.
    pub(super) fn new(config: &FrontendConfig) -> io::Result<Self> {
        let monitor = Monitor::new(config.monitor.clone());
        let members = Members::new(monitor.clone(), config.pace(), config.mark_time);
        let members = Arc::new(members);
        let block_size = monitor.settings().block_size;
        let picker = Arc::new(Picker::new(config.router_mode, block_size, config.seed));
        let policy = config.policy.clone().map(|policy| {
            let workers = Workers::new(Arc::clone(&members), Arc::clone(&picker), monitor.clone());
            Policies::new(workers, policy)
        });
        Ok(Self {
            members,
            monitor,
            picker,
            metrics: Arc::new(Metrics::new().map_err(io::Error::other)?),
            decisions: Arc::default(),
            routes: Routes::new(config.routes.clone()),
            budget: BufferBudget::new(config.buffer_budget),
            max_body: config.max_body,
            overload_status: config.overload_status,
            retry_after: config.retry_after,
            worker_idle_timeout: config.worker_idle_timeout,
            client_timeout: config.client_timeout,
            trust: config.trust,
            own_apart: config.admin_listen.is_some(),
            worker_warnings: Sparing::default(),
            configured: config.workers.clone(),
            cluster: config
                .cluster
                .is_some()
                .then(|| Arc::new(Counts::new(Side::Hears))),
            draining: CancellationToken::new(),
            policy,
        })
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }
}
