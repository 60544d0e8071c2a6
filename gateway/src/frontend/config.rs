//! What a frontend is made of.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;

use super::args::FrontendArgs;
use super::check::Pace;
use super::mark::OUT;
use super::pick::RouterMode;
use crate::cluster::SubscribeConfig;
use crate::monitor::MonitorSettings;
use crate::monitor::args::{process_environment, resolve};
use crate::policy::PolicyConfig;
use crate::proxy::engine::EngineUrl;
use crate::worker::Trust;
use crate::worker::config::{default_status, status_from_environment};
use crate::worker::routes::GateRoute;

/// Everything that makes a frontend.
#[derive(Clone, Debug)]
pub struct FrontendConfig {
    /// The workers that it begins with.
    pub workers: Vec<EngineUrl>,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// How workers are picked.
    pub router_mode: RouterMode,
    /// Seeds what is left to chance.
    pub seed: u64,
    /// The load monitor, thresholds included.
    pub monitor: MonitorSettings,
    /// Routes to pass on beside the known ones.
    pub routes: Vec<GateRoute>,
    /// The status of refusals.
    pub overload_status: StatusCode,
    /// Whether refusals say when to come back.
    pub retry_after: bool,
    /// From one check of a worker to the next.
    pub health_interval: Duration,
    /// How long a check may take.
    pub health_timeout: Duration,
    /// How long a worker that refused is left out at most.
    pub mark_time: Duration,
    /// How long a worker may be silent; `None` is for ever.
    pub worker_idle_timeout: Option<Duration>,
    /// Bytes that one body may have.
    pub max_body: u64,
    /// Bytes for the bodies that are held together.
    pub buffer_budget: u32,
    /// How long requests may go on once the frontend shuts down.
    pub drain_timeout: Duration,
    /// How long a client may take, each time that it is waited for.
    pub client_timeout: Duration,
    /// Which clients may claim something.
    pub trust: Trust,
    /// Which clients may look at the page beside the routes of requests.
    pub page: Trust,
    /// Where the routes for operations are, if not beside the others.
    pub admin_listen: Option<SocketAddr>,
    /// The policy by which requests are held while all workers are busy.
    pub policy: Option<PolicyConfig>,
    /// What is heard over NATS, if anything.
    pub cluster: Option<SubscribeConfig>,
}

impl FrontendConfig {
    /// The defaults of `tidegate frontend`, on a free port of this machine.
    #[must_use]
    pub fn new(workers: Vec<EngineUrl>) -> Self {
        Self {
            workers,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            router_mode: RouterMode::default(),
            seed: rand::random(),
            monitor: MonitorSettings::default(),
            routes: Vec::new(),
            overload_status: default_status(),
            retry_after: true,
            health_interval: Duration::from_secs(1),
            health_timeout: Duration::from_secs(2),
            mark_time: OUT,
            worker_idle_timeout: None,
            max_body: 64 << 20,
            buffer_budget: 512 << 20,
            drain_timeout: Duration::from_secs(30),
            client_timeout: Duration::from_secs(60),
            trust: Trust::Loopback,
            admin_listen: None,
            policy: None,
            cluster: None,
            page: Trust::Loopback,
        }
    }

    /// What the flags and this process's environment say. Logs what was given in vain.
    ///
    /// # Errors
    /// `InvalidInput`: a variable out of its range, flags that do not go together, or a
    /// policy's file that is unreadable or wrong.
    pub fn from_args(args: FrontendArgs) -> io::Result<Self> {
        let invalid = |said: String| io::Error::new(io::ErrorKind::InvalidInput, said);
        let resolved = resolve(&args.thresholds, &args.monitor, process_environment)
            .map_err(|error| invalid(error.to_string()))?;
        if args.max_body > args.buffer_budget {
            return Err(invalid(format!(
                "--max-body must not be above --buffer-budget, which holds bodies whole: got {} \
                 and {} MiB",
                args.max_body, args.buffer_budget
            )));
        }
        if let Some(twice) = twice(&args.workers) {
            return Err(invalid(format!(
                "--worker {twice} is given twice: each worker is named once"
            )));
        }
        let policy = PolicyConfig::from_flags(args.policy);
        let policy = policy.map_err(|error| invalid(error.to_string()))?;
        for warning in &resolved.warnings {
            tracing::warn!("{warning}");
        }
        Ok(Self {
            listen: args.listen,
            router_mode: args.router_mode,
            monitor: resolved.settings,
            routes: args.routes,
            overload_status: status_from_environment(),
            retry_after: !args.no_retry_after,
            health_interval: args.health_interval,
            health_timeout: args.health_timeout,
            worker_idle_timeout: args.worker_idle_timeout,
            max_body: u64::from(args.max_body) << 20,
            buffer_budget: args.buffer_budget << 20,
            drain_timeout: args.drain_timeout,
            client_timeout: args.client_timeout,
            trust: args.trust_admission_headers,
            admin_listen: args.admin_listen,
            policy,
            cluster: args.cluster.config(!args.workers.is_empty())?,
            page: args.page,
            ..Self::new(args.workers)
        })
    }

    /// How often workers are checked, and how long that may take.
    pub(super) fn pace(&self) -> Pace {
        Pace {
            interval: self.health_interval,
            time: self.health_timeout,
        }
    }
}

/// A worker that is named more than once: what it refuses would go to itself.
fn twice(workers: &[EngineUrl]) -> Option<&EngineUrl> {
    let mut rest = workers.iter();
    while let Some(worker) = rest.next() {
        if rest.as_slice().contains(worker) {
            return Some(worker);
        }
    }
    None
}
