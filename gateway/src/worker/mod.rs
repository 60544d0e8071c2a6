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
//! | `prompts` | prompt tokens in the engine |
//! | [`slot`] | what an admitted request holds |
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
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::Gate;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::info;

pub use args::{WorkerArgs, WorkerType};
pub use config::WorkerConfig;
pub use error::ConfigError;
pub use known::KnownEngine;
pub use trust::Trust;

use crate::cli::files;
use crate::cluster::publish::Publisher;
use crate::policy::{self, Sampling};
use crate::server::running::{Listeners, Running};
use shared::Shared;
use telling::Parts;

/// How often histograms are brought up to date.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// How long the answers have that requests get which still have none when the time
/// for draining is up.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// A running worker. Dropping it ends it at once, whatever it is doing;
/// [`shutdown`](Self::shutdown) lets requests finish.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    publisher: Option<Arc<Publisher>>,
    drain_timeout: Duration,
    running: Running,
}

impl Worker {
    /// Listens and serves, on the current Tokio runtime. The engine need not be
    /// up yet.
    ///
    /// # Errors
    /// The address is not free, or is the engine's own; a limit is out of its range, for
    /// one rank or for all that flags name together; or, for an `https` engine, the
    /// system's trusted certificates cannot be read.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(config: WorkerConfig) -> io::Result<Self> {
        let policy = config.policy.as_ref();
        let sampling = policy.map(|policy| Sampling::new(policy, &config.engine_url));
        let sampling = sampling.transpose()?;
        let shared = Arc::new(Shared::new(&config)?);
        let (running, listeners) = Running::listen(config.listen, config.admin_listen)?;
        check_not_itself(&shared, &running)?;
        accept(&shared, &running, config.page, listeners);
        running.spawn({
            let shared = Arc::clone(&shared);
            async move { report::discover(&shared, config.known_engine).await }
        });
        running.spawn(upkeep(Arc::clone(&shared)));
        if let (Some(policy), Some(sampling)) = (&shared.policy, sampling) {
            running.spawn(policy::keep(Arc::clone(policy)));
            running.spawn(policy::sample(Arc::clone(policy), sampling));
        }
        let addr = running.addr();
        let mut publisher = None;
        if let (Some(cluster), Some(config_of)) = (&shared.cluster, config.cluster) {
            let parts = Parts::new(&shared, cluster, config_of, config.worker_type, addr)?;
            let (told, says) = (parts.told, Arc::clone(&parts.publisher));
            running.spawn(async move { told.read().await });
            running.spawn(async move { says.run().await });
            publisher = Some(parts.publisher);
        }
        info!(%addr, engine = %shared.engine.url(), "worker listens");
        if let Some(addr) = running.admin_addr() {
            info!(%addr, "worker listens for operations");
        }
        Ok(Self {
            shared,
            publisher,
            drain_timeout: config.drain_timeout,
            running,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.running.addr()
    }

    /// Where its own routes are, if they have a port of their own.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.running.admin_addr()
    }

    /// Where to send requests to, from this machine.
    #[must_use]
    pub fn url(&self) -> String {
        self.running.url()
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
    /// gets 503 as well, and answers on their way are cut off. Dropping the future cuts
    /// everything off at once.
    pub async fn shutdown(self) {
        // Frontends hear of it before anyone is turned away.
        if let Some(publisher) = &self.publisher {
            publisher.leave().await;
        }
        self.shared.draining.store(true, Ordering::Relaxed);
        if !self.running.drain(self.drain_timeout).await {
            self.answer_the_rest().await;
        }
        self.running.stop().await;
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
        self.running.drained(LAST_ANSWERS).await;
    }
}

/// Runs a worker until `shutdown` is cancelled, then shuts it down gracefully.
///
/// # Errors
/// As [`Worker::start`] and [`WorkerConfig::from_args`].
pub async fn run(args: WorkerArgs, shutdown: CancellationToken) -> io::Result<()> {
    files::raise_limit();
    let config = WorkerConfig::from_args(args)?;
    let policy = config.policy.as_ref();
    let file = policy.and_then(|policy| policy.file.clone());
    let worker = Worker::start(config)?;
    policy::reload_until(&shutdown, file.as_deref(), |settings| {
        worker.follow(settings);
    })
    .await?;
    worker.shutdown().await;
    Ok(())
}

/// An engine that is this worker itself would be asked for ever.
fn check_not_itself(shared: &Shared, running: &Running) -> Result<(), ConfigError> {
    let engine = shared.engine.url();
    let own = [
        ("--listen", Some(running.addr())),
        ("--admin-listen", running.admin_addr()),
    ];
    for (flag, own) in own {
        if let Some(own) = own.filter(|own| engine.leads_to(*own)) {
            let said = format!("the engine {engine} would be this worker itself ({flag} {own})");
            return Err(ConfigError::Setting(said));
        }
    }
    Ok(())
}

/// Who gets what answer: the page before the worker's routes, on both ports.
fn accept(shared: &Arc<Shared>, running: &Running, shown: Trust, listeners: Listeners) {
    let page = seen::page(shared, running.draining());
    // Where the own routes have a port of their own, the page is there.
    let beside = running.admin_addr().is_none();
    let traffic = {
        let (shared, page) = (Arc::clone(shared), page.clone());
        move |request, peer| {
            let trusted = shared.trust.covers(peer);
            let (shared, page) = (Arc::clone(&shared), page.clone());
            let next = move |request| handle::handle(shared, request, trusted);
            page.or(beside && shown.covers(peer), request, next)
        }
    };
    let operations = {
        let shared = Arc::clone(shared);
        move |request| {
            let (shared, page) = (Arc::clone(&shared), page.clone());
            let next = move |request| own::only(shared, request);
            page.or(shown != Trust::None, request, next)
        }
    };
    running.accept(listeners, shared.client_timeout, traffic, operations);
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
