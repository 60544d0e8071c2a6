//! The demo's servers: simulated engines, a worker before each, a frontend before all.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate::Gate;
use tidegate_policy::file;
use tidegate_policy::shadow::Mode;
use tokio::time::{sleep, timeout};

use super::ports::{Moved, loopback, start_on};
use crate::cli::failure::Failure;
use crate::engine::batch::BatchConfig;
use crate::engine::{Engine, EngineConfig};
use crate::frontend::{Frontend, FrontendConfig, Tallies};
use crate::load::client::{Target, TargetError};
use crate::policy::PolicyConfig;
use crate::proxy::engine::EngineUrl;
use crate::worker::{Worker, WorkerConfig};

/// Engines and workers, and as many ports from each base.
const PAIRS: u16 = 2;
/// Port of the frontend.
const FRONTEND_PORT: u16 = 8080;
/// First port of the workers.
const WORKER_PORT: u16 = 8100;
/// First port of the engines.
const ENGINE_PORT: u16 = 8000;

/// Data-parallel ranks of an engine.
pub const RANKS: u32 = 2;
/// Sequences in one rank's batch. So few that a load of a dozen requests a
/// second fills queues and gets refusals, which is what there is to see.
const MAX_NUM_SEQS: u32 = 4;
/// KV blocks of a rank: as few as such a batch half fills.
const KV_BLOCKS: u32 = 800;
/// Sequences that all engines run at once.
#[cfg(test)]
pub const TOTAL_SEQS: u32 = PAIRS as u32 * RANKS * MAX_NUM_SEQS;
/// How long a worker may take to ask its engine, and the frontend its workers; a
/// moment is usual.
const ASKING_TIME: Duration = Duration::from_secs(5);
/// How often the frontend reads its workers' metrics: room is found again soon.
const SCRAPE_INTERVAL: Duration = Duration::from_millis(200);
/// How long requests of a user's own may go on after the stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A simulated engine and the worker before it.
pub struct Pair {
    /// The engine.
    pub engine: Engine,
    /// The worker.
    pub worker: Worker,
}

/// All servers of the demo.
pub struct Stack {
    /// Engines and workers, in order of their ports.
    pub pairs: Vec<Pair>,
    /// What stands before all workers.
    pub frontend: Frontend,
    /// Ports that had to be others than usual.
    pub moved: Vec<Moved>,
}

impl Stack {
    /// Starts everything, on free ports where the usual ones are taken.
    ///
    /// # Errors
    /// A server that does not start for another reason.
    pub async fn start() -> Result<Self, Failure> {
        let (mut pairs, mut moved) = (Vec::new(), Vec::new());
        for index in 0..PAIRS {
            let engine = engine(index, &mut moved).await?;
            let worker = worker(index, &engine, &mut moved).await?;
            pairs.push(Pair { engine, worker });
        }
        let frontend = frontend(&pairs, &mut moved).await?;
        Ok(Stack {
            pairs,
            frontend,
            moved,
        })
    }

    /// Each worker's address and its gate, which can be read when the worker is gone.
    pub fn gates(&self) -> Vec<(SocketAddr, Gate)> {
        self.pairs
            .iter()
            .map(|pair| (pair.worker.addr(), pair.worker.gate().clone()))
            .collect()
    }

    /// The frontend's address and its counts, which can be read when it is gone.
    pub fn tallies(&self) -> (SocketAddr, Tallies) {
        (self.frontend.addr(), self.frontend.tallies())
    }

    /// The frontend, as a target of load.
    ///
    /// # Errors
    /// Its address is none that load can be sent to, which does not happen.
    pub fn target(&self) -> Result<Target, TargetError> {
        self.frontend.url().parse()
    }

    /// Stops the frontend, the workers and the engines, in this order, and waits for
    /// each.
    pub async fn shutdown(self) {
        self.frontend.shutdown().await;
        for pair in self.pairs {
            pair.worker.shutdown().await;
            pair.engine.shutdown().await;
        }
    }
}

async fn engine(index: u16, moved: &mut Vec<Moved>) -> Result<Engine, Failure> {
    let start = async |listen| {
        let defaults = EngineConfig::default();
        let batch = BatchConfig {
            max_num_seqs: MAX_NUM_SEQS,
            kv_blocks: KV_BLOCKS,
            ..defaults.batch
        };
        let seed = u64::from(index);
        Engine::start(EngineConfig {
            listen,
            ranks: RANKS,
            batch,
            seed,
            ..defaults
        })
        .await
    };
    let wanted = loopback(ENGINE_PORT + index);
    let engine = start_on(wanted, start).await?;
    note(moved, wanted, engine.addr());
    Ok(engine)
}

async fn worker(index: u16, engine: &Engine, moved: &mut Vec<Moved>) -> Result<Worker, Failure> {
    let engine_url: EngineUrl = engine.url().parse()?;
    let policy = Some(watching()?);
    let start = async |listen| {
        Worker::start(WorkerConfig {
            listen,
            drain_timeout: DRAIN_TIMEOUT,
            policy: policy.clone(),
            ..WorkerConfig::new(engine_url.clone())
        })
    };
    let wanted = loopback(WORKER_PORT + index);
    let worker = start_on(wanted, start).await?;
    informed(worker.gate()).await;
    note(moved, wanted, worker.addr());
    Ok(worker)
}

/// The default policy, which only observes: it reads the engine's state and knows
/// what clients get, which the page shows, and leaves every decision to the gate.
fn watching() -> Result<PolicyConfig, Failure> {
    Ok(PolicyConfig {
        mode: Mode::Observe,
        ..PolicyConfig::new(file::parse(file::DEFAULT)?)
    })
}

async fn frontend(pairs: &[Pair], moved: &mut Vec<Moved>) -> Result<Frontend, Failure> {
    let urls = pairs.iter().map(|pair| pair.worker.url().parse());
    let urls: Vec<EngineUrl> = urls.collect::<Result<_, _>>()?;
    let start = async |listen| {
        let mut config = FrontendConfig::new(urls.clone());
        config.listen = listen;
        config.drain_timeout = DRAIN_TIMEOUT;
        config.monitor.scrape_interval = Some(SCRAPE_INTERVAL);
        Frontend::start(config)
    };
    let wanted = loopback(FRONTEND_PORT);
    let frontend = start_on(wanted, start).await?;
    ready(&frontend).await;
    note(moved, wanted, frontend.addr());
    Ok(frontend)
}

fn note(moved: &mut Vec<Moved>, wanted: SocketAddr, taken: SocketAddr) {
    if wanted != taken {
        moved.push(Moved { wanted, taken });
    }
}

/// Waits until the frontend has heard of every worker, so that the load finds all of
/// them. If that takes too long it has warned of it.
async fn ready(frontend: &Frontend) {
    let all = async {
        while !frontend.workers().iter().all(|worker| worker.is_well()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // Either way the demo goes on.
    let _ = timeout(ASKING_TIME, all).await;
}

/// Waits until a gate knows its engine's ranks and size, so that the load finds
/// the right limits. If that takes too long the worker has warned of it.
async fn informed(gate: &Gate) {
    let told = async {
        while gate.snapshot().lanes.len() == 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // Either way the demo goes on.
    let _ = timeout(ASKING_TIME, told).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_workers_ask_their_engines_for_the_limits() {
        let stack = Stack::start().await.expect("free ports");
        for (_, gate) in stack.gates() {
            let now = gate.snapshot();
            assert_eq!(now.ranks(), u64::from(RANKS));
            assert_eq!(now.limits.engine_request_limit, MAX_NUM_SEQS);
            assert_eq!(now.limits.request_queue_limit, 2 * MAX_NUM_SEQS);
        }
        stack.shutdown().await;
    }
}
