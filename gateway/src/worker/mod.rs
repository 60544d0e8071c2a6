//! `tidegate worker`: the gate in front of one engine.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | `known` | what is known of the engine without asking it |
//! | `error` | why there is no worker |
//! | [`prefix`] | what may go before a metric's name |
//! | [`trust`] | which clients are believed |
//! | [`routes`] | which requests are gated |
//! | [`slot`] | what an admitted request holds |
//! | `prompts` | prompt tokens in the engine |
//! | `told` | answers that began before admission |
//! | `answer`, [`refusal`] | what the worker says itself |
//! | [`args`], [`config`] | flags, and everything that makes a worker |
//! | `legacy`, [`metrics`] | `/metrics` |
//! | `shared` | what every request needs |
//! | `pages` | where engines tell their size |
//! | [`report`] | how the gate learns the engine's size |
//! | `telling` | what is told over NATS |
//! | `own` | the worker's own routes |
//! | `decision` | what the gate decided, in the log |
//! | `away` | what those hear that do not get in |
//! | `waiting` | a request that waits, at the gate or in its class |
//! | `enter` | a gated request's way in |
//! | `forward` | a request's way to the engine, and back |
//! | `progress` | news for those who wait |
//! | `handle` | a request's whole way |
//! | `seen` | what the page shows |

mod answer;
pub mod args;
mod away;
pub mod config;
mod decision;
mod enter;
mod error;
mod forward;
mod handle;
mod known;
mod legacy;
pub mod metrics;
mod own;
mod pages;
pub mod prefix;
mod progress;
mod prompts;
pub mod refusal;
pub mod report;
pub mod routes;
mod seen;
mod shared;
pub mod slot;
mod telling;
mod told;
pub mod trust;
mod waiting;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::Gate;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

pub use args::WorkerArgs;
pub use config::{WorkerConfig, WorkerType};
pub use error::ConfigError;
pub use known::KnownEngine;
pub use trust::Trust;

use crate::cli::files;
use crate::cli::sparing::Sparing;
use crate::cluster::counts::{Counts, Side};
use crate::cluster::publish::Publisher;
use crate::policy::{self, Layer, Sampling};
use crate::proxy::budget::BufferBudget;
use crate::proxy::engine::{Engine, Reuse};
use crate::server::drain::Drain;
use crate::server::serve::{self, Purpose, Tasks};
use crate::server::url_of;
use metrics::Metrics;
use routes::Routes;
use shared::Shared;
use telling::{Cluster, Parts};

/// How often histograms are brought up to date.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How long the answers have that requests get which still have none when the time
/// for draining is up.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// A running worker. Dropping it ends it at once, whatever it is doing;
/// [`shutdown`](Self::shutdown) lets requests finish.
#[derive(Debug)]
pub struct Worker {
    addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
    shared: Arc<Shared>,
    publisher: Option<Arc<Publisher>>,
    tasks: Arc<Tasks>,
    drain_timeout: Duration,
    _stop_on_drop: DropGuard,
}

impl Worker {
    /// Listens and serves, on the current Tokio runtime. The engine need not be
    /// up yet.
    ///
    /// # Errors
    /// The address is not free, a limit is out of its range, for one rank or for all
    /// that flags name together, or, for an `https`
    /// engine, the system's trusted certificates cannot be read.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(config: WorkerConfig) -> io::Result<Self> {
        config
            .known_engine
            .check(config.settings)
            .map_err(ConfigError::from)?;
        let gate = Gate::builder()
            .settings(config.settings)
            .build()
            .map_err(ConfigError::from)?;
        let policy = config.policy.as_ref().map(|policy| {
            let size = report::size(config.settings, 1, None);
            let settings = policy.settings.clone();
            Arc::new(Layer::new(gate.clone(), size, settings, policy.mode))
        });
        let sampling = config.policy.as_ref();
        let sampling = sampling.map(|policy| Sampling::new(policy, &config.engine_url));
        let sampling = sampling.transpose()?;
        let worker_type = config.worker_type.map(WorkerType::label);
        let shared = Arc::new(Shared {
            metrics: Metrics::new(
                gate.clone(),
                &config.metrics_prefix,
                worker_type,
                config.legacy_metrics,
                config.settings.engine_request_limit.is_some(),
            )?,
            gate,
            policy,
            engine: Engine::new(config.engine_url)?,
            routes: match config.admin_listen {
                None => Routes::new(config.gate_routes),
                Some(_) => Routes::new(config.gate_routes).without_own(),
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
        });
        let listener = serve::listen(config.listen)?;
        let addr = listener.local_addr()?;
        let admin = config.admin_listen.map(serve::listen).transpose()?;
        let admin_addr = admin.as_ref().map(TcpListener::local_addr).transpose()?;
        let mut own = [("--listen", Some(addr)), ("--admin-listen", admin_addr)].into_iter();
        if let Some((flag, Some(own))) =
            own.find(|(_, own)| own.is_some_and(|own| shared.engine.url().leads_to(own)))
        {
            let engine = shared.engine.url();
            let said = format!("the engine {engine} would be this worker itself ({flag} {own})");
            return Err(ConfigError::Setting(said).into());
        }
        let tasks = Arc::new(Tasks::default());
        let patience = shared.client_timeout;
        let page = seen::page(&shared, tasks.drain.clone());
        let shown = config.page;
        tasks.all.spawn({
            let (shared, page) = (Arc::clone(&shared), page.clone());
            // Where the own routes have a port of their own, the page is there.
            let beside = admin.is_none();
            let answer = move |request, peer| {
                let trusted = shared.trust.covers(peer);
                let (shared, page) = (Arc::clone(&shared), page.clone());
                let next = move |request| handle::handle(shared, request, trusted);
                let seen = beside && shown.covers(peer);
                page.or(seen, request, next)
            };
            let of = Arc::clone(&tasks);
            serve::accept(listener, Purpose::Traffic, patience, answer, of)
        });
        if let Some(listener) = admin {
            let shared = Arc::clone(&shared);
            let seen = shown != Trust::None;
            let answer = move |request, _| {
                let (shared, page) = (Arc::clone(&shared), page.clone());
                let next = move |request| own::only(shared, request);
                page.or(seen, request, next)
            };
            let of = Arc::clone(&tasks);
            let accepting = serve::accept(listener, Purpose::Operations, patience, answer, of);
            tasks.all.spawn(accepting);
        }
        spawn_until_stopped(&tasks, {
            let shared = Arc::clone(&shared);
            async move { report::discover(&shared, config.known_engine).await }
        });
        spawn_until_stopped(&tasks, upkeep(Arc::clone(&shared)));
        if let (Some(policy), Some(sampling)) = (&shared.policy, sampling) {
            spawn_until_stopped(&tasks, policy::keep(Arc::clone(policy)));
            spawn_until_stopped(&tasks, policy::sample(Arc::clone(policy), sampling));
        }
        let mut publisher = None;
        if let (Some(cluster), Some(config_of)) = (&shared.cluster, config.cluster) {
            let parts = Parts::new(&shared, cluster, config_of, config.worker_type, addr)?;
            let (told, says) = (parts.told, Arc::clone(&parts.publisher));
            spawn_until_stopped(&tasks, async move { told.read().await });
            spawn_until_stopped(&tasks, async move { says.run().await });
            publisher = Some(parts.publisher);
        }
        info!(%addr, engine = %shared.engine.url(), "worker listens");
        if let Some(addr) = admin_addr {
            info!(%addr, "worker listens for operations");
        }
        Ok(Self {
            addr,
            admin_addr,
            shared,
            publisher,
            drain_timeout: config.drain_timeout,
            _stop_on_drop: tasks.stop.clone().drop_guard(),
            tasks,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where its own routes are, if they have a port of their own.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// Where to send requests to, from this machine.
    #[must_use]
    pub fn url(&self) -> String {
        url_of(self.addr)
    }

    /// The gate that it serves.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Follows these settings of its policy from now on, for requests that are held
    /// too. Says whether it has a policy.
    pub fn follow(&self, settings: policy::Settings) -> bool {
        let policy = self.shared.policy.as_ref();
        policy.map(|policy| policy.reload(settings)).is_some()
    }

    /// Ends gracefully: new gated requests get 503, those that run or are queued
    /// have the configured time. What has no answer then, queued or in the engine,
    /// gets 503 as well, and answers on their way are cut off. Dropping the future cuts everything off at once.
    pub async fn shutdown(self) {
        // Frontends hear of it before anyone is turned away.
        if let Some(publisher) = &self.publisher {
            publisher.leave().await;
        }
        self.shared.draining.store(true, Ordering::Relaxed);
        self.tasks.drain.cancel();
        self.tasks.old.close();
        let drained = tokio::time::timeout(self.drain_timeout, self.tasks.old.wait()).await;
        if drained.is_err() {
            warn!(
                connections = self.tasks.old.len(),
                "time is up: cutting off what is left"
            );
            self.answer_the_rest().await;
        }
        self.tasks.stop.cancel();
        self.tasks.all.close();
        self.tasks.all.wait().await;
        info!("worker stopped");
    }

    /// Answers whatever has no answer yet, held, queued or in the engine, and gives the
    /// answers a moment to be written.
    async fn answer_the_rest(&self) {
        self.shared.gate.stop();
        if let Some(policy) = &self.shared.policy {
            policy.stop();
        }
        self.shared.cut.cancel();
        // Answers that are on their way keep their connections, so that this often
        // takes the whole time.
        let _ = tokio::time::timeout(LAST_ANSWERS, self.tasks.old.wait()).await;
    }
}

/// Runs a worker until `shutdown` is cancelled, then shuts it down gracefully.
///
/// # Errors
/// As [`Worker::start`] and [`WorkerConfig::from_args`].
pub async fn run(args: WorkerArgs, shutdown: CancellationToken) -> io::Result<()> {
    files::raise_limit();
    let config = WorkerConfig::from_args(args)?;
    let file = config
        .policy
        .as_ref()
        .and_then(|policy| policy.file.clone());
    let worker = Worker::start(config)?;
    match file {
        Some(file) => {
            let reloads = policy::reload(&file, |settings| {
                worker.follow(settings);
            });
            tokio::select! {
                () = shutdown.cancelled() => {}
                failed = reloads => failed?,
            }
        }
        None => shutdown.cancelled().await,
    }
    worker.shutdown().await;
    Ok(())
}

fn spawn_until_stopped(tasks: &Tasks, task: impl Future<Output = ()> + Send + 'static) {
    let stop = tasks.stop.clone();
    tasks.all.spawn(async move {
        stop.run_until_cancelled(task).await;
    });
}

async fn upkeep(shared: Arc<Shared>) {
    let histograms = async {
        loop {
            sleep(UPKEEP_INTERVAL).await;
            shared.metrics.upkeep();
        }
    };
    let at_work = || shared.gate.snapshot().worker.running > 0;
    tokio::join!(histograms, shared.drain.keep(at_work));
}
