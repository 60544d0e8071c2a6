//! `tidegate frontend`: sends requests to workers, and refuses when all of them
//! have too much to do.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`endpoint`] | the routes that go to workers |
//! | [`health`] | whether a worker is well |
//! | [`mark`] | what its refusals say for a moment |
//! | [`hops`] | how tries at it ended |
//! | `trial` | how many it gets that a policy held, once it refused |
//! | [`member`], `check` | a worker, and what asks it |
//! | `eligible` | which workers a request may go to |
//! | `members` | all of them |
//! | [`pick`] | which of those that may have a request gets it |
//! | `choose`, `workers` | who gets a request; all of them as what a policy holds it before |
//! | [`ask`] | what is read of a request |
//! | [`tokens`] | what is read of an answer |
//! | `metrics`, `record` | what is counted, and one request's part of it |
//! | `held` | what a request holds while a worker has it |
//! | `refusal`, `answer` | a worker's refusal; what the frontend says itself |
//! | [`args`], [`config`] | flags, and everything that makes a frontend |
//! | `policies` | the policy's queues, by model |
//! | `shared` | what every request needs |
//! | `tallies` | what was counted, for those in the same process |
//! | `unsourced` | thresholds that nothing is known to judge by |
//! | `joining` | workers that come and go by NATS |
//! | `attempt` | one request, sent to one worker once |
//! | `route` | a request's way: who gets it, and who gets it next |
//! | `hold` | the same with a policy, which may hold it first |
//! | `own` | the frontend's own routes |
//! | `handle` | a request's way in |
//! | `seen` | what the page shows |

mod answer;
pub mod args;
pub mod ask;
mod attempt;
mod check;
mod choose;
pub mod config;
mod eligible;
pub mod endpoint;
mod handle;
pub mod health;
mod held;
mod hold;
pub mod hops;
mod joining;
pub mod mark;
pub mod member;
mod members;
mod metrics;
mod own;
pub mod pick;
mod policies;
mod record;
mod refusal;
mod route;
mod seen;
mod shared;
mod tallies;
pub mod tokens;
mod trial;
mod unsourced;
mod workers;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::info;

pub use crate::proxy::models;
pub use args::FrontendArgs;
pub use config::FrontendConfig;
pub use held::Held;
pub use member::Member;
pub use pick::RouterMode;
pub use record::Outcome;
pub use tallies::Tallies;

use crate::cli::files;
use crate::cluster::subscribe;
use crate::monitor::Monitor;
use crate::policy;
use crate::proxy::engine::EngineUrl;
use crate::server::running::{Listeners, Running};
use crate::worker::Trust;
use shared::Shared;

/// How often histograms are brought up to date.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A running frontend. Dropping it ends it at once, whatever it is doing;
/// [`shutdown`](Self::shutdown) lets requests finish.
#[derive(Debug)]
pub struct Frontend {
    shared: Arc<Shared>,
    drain_timeout: Duration,
    running: Running,
}

impl Frontend {
    /// Listens and serves, on the current Tokio runtime. The workers need not be up
    /// yet: each gets requests once it has answered a check.
    ///
    /// # Errors
    /// An address is not free, or, for an `https` worker, the system's trusted
    /// certificates cannot be read.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(config: FrontendConfig) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(&config)?);
        let (running, listeners) = Running::listen(config.listen, config.admin_listen)?;
        for url in config.workers {
            shared.members.add(url)?;
        }
        accept(&shared, &running, config.page, listeners);
        running.spawn({
            let shared = Arc::clone(&shared);
            async move {
                tokio::join!(upkeep(&shared), unsourced::warn_of_thresholds(&shared));
            }
        });
        if let (Some(cluster), Some(counts)) = (config.cluster, &shared.cluster) {
            let roster = Arc::clone(&shared) as Arc<dyn subscribe::Roster>;
            running.spawn(subscribe::run(cluster, roster, Arc::clone(counts)));
        }
        info!(addr = %running.addr(), workers = shared.members.all().len(), "frontend listens");
        if let Some(addr) = running.admin_addr() {
            info!(%addr, "frontend listens for operations");
        }
        Ok(Self {
            shared,
            drain_timeout: config.drain_timeout,
            running,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.running.addr()
    }

    /// Where its routes for operations are, if they have a port of their own.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.running.admin_addr()
    }

    /// Where to send requests to, from this machine.
    #[must_use]
    pub fn url(&self) -> String {
        self.running.url()
    }

    /// The workers, in order of their ids.
    #[must_use]
    pub fn workers(&self) -> Vec<Arc<Member>> {
        self.shared.members.all().to_vec()
    }

    /// What it has counted.
    #[must_use]
    pub fn tallies(&self) -> Tallies {
        Tallies(Arc::clone(&self.shared))
    }

    /// What watches their load.
    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.shared.monitor
    }

    /// Adds a worker, and gives its id.
    ///
    /// # Errors
    /// For `https`, when the system's trusted certificates cannot be read.
    pub fn add_worker(&self, url: EngineUrl) -> io::Result<u64> {
        self.shared.members.add(url)
    }

    /// Follows another policy from now on; whoever is held stays so. `false` if there is
    /// none to replace.
    pub fn follow(&self, settings: policy::Settings) -> bool {
        let Some(policy) = &self.shared.policy else {
            return false;
        };
        policy.follow(settings);
        true
    }

    /// Takes a worker out; what it has goes on. Whether it was there.
    pub fn remove_worker(&self, id: u64) -> bool {
        self.shared.members.remove(id)
    }

    /// Ends gracefully: new requests and those that a policy holds get 503, those that
    /// run have the configured time. Then they are cut off. Dropping the future cuts
    /// everything off at once.
    pub async fn shutdown(self) {
        self.shared.draining.cancel();
        self.running.drain(self.drain_timeout).await;
        self.running.stop().await;
        info!("frontend stopped");
    }
}

/// Runs a frontend until `shutdown` is cancelled, then shuts it down gracefully.
///
/// # Errors
/// As [`Frontend::start`] and [`FrontendConfig::from_args`].
pub async fn run(args: FrontendArgs, shutdown: CancellationToken) -> io::Result<()> {
    files::raise_limit();
    let config = FrontendConfig::from_args(args)?;
    let policy = config.policy.as_ref();
    let file = policy.and_then(|policy| policy.file.clone());
    let frontend = Frontend::start(config)?;
    policy::reload_until(&shutdown, file.as_deref(), |settings| {
        frontend.follow(settings);
    })
    .await?;
    frontend.shutdown().await;
    Ok(())
}

/// Who gets what answer: the page before the frontend's routes, on both ports.
fn accept(shared: &Arc<Shared>, running: &Running, shown: Trust, listeners: Listeners) {
    let page = seen::page(shared, running.draining());
    let traffic = {
        let (shared, page) = (Arc::clone(shared), page.clone());
        move |request, peer| {
            let trusted = shared.trust.covers(peer);
            let seen = !shared.own_apart && shown.covers(peer);
            let (shared, page) = (Arc::clone(&shared), page.clone());
            let next = move |request| handle::handle(shared, request, trusted);
            page.or(seen, request, next)
        }
    };
    let operations = {
        let shared = Arc::clone(shared);
        move |request| {
            let (shared, page) = (Arc::clone(&shared), page.clone());
            let next = move |request| async move { own::only(&shared, request).await };
            page.or(shown != Trust::None, request, next)
        }
    };
    running.accept(listeners, shared.client_timeout, traffic, operations);
}

async fn upkeep(shared: &Shared) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        shared.metrics.upkeep();
    }
}

#[cfg(test)]
#[path = "crowd_tests.rs"]
mod crowd;
