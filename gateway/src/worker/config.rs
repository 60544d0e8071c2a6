//! What a worker is made of.

use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;
use tidegate::Settings;

use super::args::{WorkerArgs, WorkerType};
use super::error::ConfigError;
use super::known::KnownEngine;
use super::refusal::{OVERLOADED, has_body, parse_status};
use super::routes::GateRoute;
use super::trust::Trust;
use crate::cluster::PublishConfig;
use crate::policy::PolicyConfig;
use crate::proxy::engine::EngineUrl;

/// Where the status of refusals is read from.
const STATUS_VARIABLE: &str = "DYN_HTTP_OVERLOAD_STATUS_CODE";

/// Everything that makes a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The engine.
    pub engine_url: EngineUrl,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Limits that someone set.
    pub settings: Settings,
    /// What is known of the engine without asking it.
    pub known_engine: KnownEngine,
    /// Routes to gate beside the known ones.
    pub gate_routes: Vec<GateRoute>,
    /// A label for all metrics.
    pub worker_type: Option<WorkerType>,
    /// The status of refusals.
    pub overload_status: StatusCode,
    /// Whether refusals say when to come back.
    pub retry_after: bool,
    /// How long an engine may be silent; `None` is for ever.
    pub engine_idle_timeout: Option<Duration>,
    /// How often an engine that was asked for its size is asked again: it may have
    /// been started anew. What flags say is not asked for.
    pub ask_again: Duration,
    /// Bytes for the bodies of queued requests together.
    pub buffer_budget: u32,
    /// How long requests may go on once the worker shuts down.
    pub drain_timeout: Duration,
    /// How long a client may take, each time that it is waited for.
    pub client_timeout: Duration,
    /// Bytes that the body of a gated request may have.
    pub max_body: u64,
    /// Whether the body may name a rank.
    pub rank_from_body: bool,
    /// Whether a gated request may go out on a connection that another was on.
    pub keep_engine_connections: bool,
    /// Which clients may claim something.
    pub trust: Trust,
    /// Where the worker's own routes are, if not beside the others.
    pub admin_listen: Option<SocketAddr>,
    /// Which clients may look at the page beside the routes of requests.
    pub page: Trust,
    /// What goes before each metric's name.
    pub metrics_prefix: String,
    /// Whether the metrics have their older names too.
    pub legacy_metrics: bool,
    /// What decides before the gate does, if anything.
    pub policy: Option<PolicyConfig>,
    /// What is said over NATS, if anything.
    pub cluster: Option<PublishConfig>,
}

impl WorkerConfig {
    /// The defaults of `tidegate worker`, on a free port of this machine.
    #[must_use]
    pub fn new(engine_url: EngineUrl) -> Self {
        Self {
            engine_url,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            settings: Settings::default(),
            known_engine: KnownEngine::default(),
            gate_routes: Vec::new(),
            worker_type: None,
            overload_status: default_status(),
            retry_after: true,
            engine_idle_timeout: None,
            ask_again: Duration::from_secs(60),
            buffer_budget: 64 << 20,
            drain_timeout: Duration::from_secs(30),
            client_timeout: Duration::from_secs(60),
            max_body: 256 << 20,
            rank_from_body: false,
            keep_engine_connections: false,
            trust: Trust::Loopback,
            admin_listen: None,
            page: Trust::Loopback,
            metrics_prefix: tidegate::metrics::PREFIX.to_owned(),
            legacy_metrics: false,
            policy: None,
            cluster: None,
        }
    }

    /// What the flags and this process's environment say. Logs the limits, and
    /// what was wrong with a variable.
    ///
    /// # Errors
    /// `--rank-from-body` without a budget to read bodies in; or a limit out of
    /// its range, which only code that builds the arguments itself can bring about.
    pub fn from_args(args: WorkerArgs) -> Result<Self, ConfigError> {
        let resolved = args
            .limits
            .resolve(args.max_num_seqs)
            .map_err(|error| ConfigError::Setting(error.to_string()))?;
        let reads_bodies = [
            (args.rank_from_body, "--rank-from-body"),
            (args.policy.follow.policy.is_some(), "--policy"),
        ];
        for (_, flag) in reads_bodies.into_iter().filter(|(set, _)| *set) {
            if args.buffer_budget == 0 {
                let said = format!("{flag} needs a --buffer-budget above 0 to read bodies in");
                return Err(ConfigError::Setting(said));
            }
        }
        let cluster = args.cluster.config(args.listen);
        let cluster = cluster.map_err(|error| ConfigError::Setting(error.to_string()))?;
        resolved.log();
        Ok(Self {
            listen: args.listen,
            settings: resolved.settings,
            known_engine: KnownEngine {
                ranks: args.dp_ranks.map(|ranks| ranks.0),
                max_num_seqs: args.max_num_seqs,
            },
            gate_routes: args.gate_routes,
            worker_type: args.worker_type,
            overload_status: status_from_environment(),
            retry_after: !args.no_retry_after,
            engine_idle_timeout: args.engine_idle_timeout,
            buffer_budget: args.buffer_budget << 20,
            drain_timeout: args.drain_timeout,
            client_timeout: args.client_timeout,
            max_body: u64::from(args.max_body) << 20,
            rank_from_body: args.rank_from_body,
            keep_engine_connections: args.keep_engine_connections,
            trust: args.trust_admission_headers,
            admin_listen: args.admin_listen,
            page: args.page,
            metrics_prefix: args.metrics_prefix,
            legacy_metrics: args.legacy_metrics,
            policy: PolicyConfig::of_worker(args.policy)?,
            cluster,
            ..Self::new(args.engine_url)
        })
    }
}

pub(crate) fn default_status() -> StatusCode {
    StatusCode::from_u16(OVERLOADED).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

pub(crate) fn status_from_environment() -> StatusCode {
    let Some(value) = std::env::var_os(STATUS_VARIABLE) else {
        return default_status();
    };
    let value = value.to_string_lossy();
    let status = parse_status(&value).unwrap_or_else(|why| {
        tracing::warn!("{STATUS_VARIABLE}={value:?} {why}; refusals say {OVERLOADED}");
        default_status()
    });
    if !has_body(status) {
        tracing::warn!(
            "{STATUS_VARIABLE}={value:?} is a status without a body: refusals say why in their headers alone"
        );
    }
    status
}
