//! The demo's servers: simulated engines and a worker before each.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate::Gate;
use tokio::time::{sleep, timeout};

use super::ports::{Moved, loopback, start_on};
use crate::cli::failure::Failure;
use crate::engine::batch::BatchConfig;
use crate::engine::{Engine, EngineConfig};
use crate::load::client::{Target, TargetError};
use crate::proxy::engine::EngineUrl;
use crate::worker::{Worker, WorkerConfig};

/// Engines and workers, and as many ports from each base.
const PAIRS: u16 = 2;
/// First port of the workers.
const WORKER_PORT: u16 = 8100;
/// First port of the engines.
const ENGINE_PORT: u16 = 8000;

/// Data-parallel ranks of an engine.
pub const RANKS: u32 = 2;
/// Sequences in one rank's batch. So few that a load of a dozen requests a
/// second fills queues and gets refusals, which is what there is to see.
const MAX_NUM_SEQS: u32 = 4;
/// Sequences that all engines run at once.
#[cfg(test)]
pub const TOTAL_SEQS: u32 = PAIRS as u32 * RANKS * MAX_NUM_SEQS;
/// How long a worker may take to ask its engine; a moment is usual.
const ASKING_TIME: Duration = Duration::from_secs(5);
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
    /// Ports that had to be others than usual.
    pub moved: Vec<Moved>,
}

impl Stack {
    /// Starts everything, on free ports where the usual ones are taken.
    ///
    /// # Errors
    /// A server that does not start for another reason.
    pub async fn start() -> Result<Self, Failure> {
        let mut stack = Stack {
            pairs: Vec::new(),
            moved: Vec::new(),
        };
        for index in 0..PAIRS {
            let engine = stack.engine(index).await?;
            let worker = stack.worker(index, &engine).await?;
            stack.pairs.push(Pair { engine, worker });
        }
        Ok(stack)
    }

    /// Each worker's address and its gate, which can be read when the worker is gone.
    pub fn gates(&self) -> Vec<(SocketAddr, Gate)> {
        self.pairs
            .iter()
            .map(|pair| (pair.worker.addr(), pair.worker.gate().clone()))
            .collect()
    }

    /// Each worker, as a target of load.
    pub fn targets(&self) -> Result<Vec<Target>, TargetError> {
        self.pairs
            .iter()
            .map(|pair| pair.worker.url().parse())
            .collect()
    }

    async fn engine(&mut self, index: u16) -> Result<Engine, Failure> {
        let start = async |listen| {
            let defaults = EngineConfig::default();
            let batch = BatchConfig {
                max_num_seqs: MAX_NUM_SEQS,
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
        self.note(wanted, engine.addr());
        Ok(engine)
    }

    async fn worker(&mut self, index: u16, engine: &Engine) -> Result<Worker, Failure> {
        let engine_url: EngineUrl = engine.url().parse()?;
        let start = async |listen| {
            let drain_timeout = DRAIN_TIMEOUT;
            let defaults = WorkerConfig::new(engine_url.clone());
            Worker::start(WorkerConfig {
                listen,
                drain_timeout,
                ..defaults
            })
        };
        let wanted = loopback(WORKER_PORT + index);
        let worker = start_on(wanted, start).await?;
        informed(worker.gate()).await;
        self.note(wanted, worker.addr());
        Ok(worker)
    }

    fn note(&mut self, wanted: SocketAddr, taken: SocketAddr) {
        if wanted != taken {
            self.moved.push(Moved { wanted, taken });
        }
    }

    /// Stops the workers, then the engines, and waits for both.
    pub async fn shutdown(self) {
        for pair in self.pairs {
            pair.worker.shutdown().await;
            pair.engine.shutdown().await;
        }
    }
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
