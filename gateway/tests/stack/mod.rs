//! A simulated engine and the worker before it, on loopback, and what every
//! test of the two ends with.

// Each test file uses its own part of this.
#![allow(dead_code)]

#[path = "../gate/mod.rs"]
mod gate;

use std::time::Duration;

use tidegate::Snapshot;
use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::engine::{Engine, EngineConfig, RankCounts};
use tidegate_gateway::load::{Client, Outcome, Planned};
use tidegate_gateway::worker::{Worker, WorkerConfig};
use tokio::time::{Instant, sleep};

pub use gate::{LONG, limits, soon};

/// An engine of `ranks` ranks that is `speed` times as fast as an H100.
pub fn simulated(ranks: u32, max_num_seqs: u32, speed: f64) -> EngineConfig {
    let defaults = EngineConfig::default();
    EngineConfig {
        ranks,
        speed,
        batch: BatchConfig {
            max_num_seqs,
            ..defaults.batch
        },
        ..defaults
    }
}

/// The two, started.
pub struct Stack {
    pub engine: Engine,
    pub worker: Worker,
}

impl Stack {
    /// Starts both, and waits until the worker knows the engine: it is told
    /// nothing and has to ask.
    pub async fn start(engine: EngineConfig, change: impl FnOnce(&mut WorkerConfig)) -> Self {
        let lanes = engine.ranks as usize + 1;
        let engine = Engine::start(engine).await.expect("a free port");
        let mut config = WorkerConfig::new(engine.url().parse().expect("a URL"));
        change(&mut config);
        let worker = Worker::start(config).expect("a free port");
        let stack = Self { engine, worker };
        stack
            .until("the ranks are known", |seen| seen.lanes.len() == lanes)
            .await;
        stack
    }

    /// One rank with these limits, before an engine in which nothing ends by
    /// itself within a test if it is asked for many tokens.
    pub async fn small(running: u32, waiting: u32, queued: u32) -> Self {
        Self::start(simulated(1, 256, 1.0), |config| {
            config.settings = limits(running, waiting, queued);
        })
        .await
    }

    pub fn snapshot(&self) -> Snapshot {
        self.worker.gate().snapshot()
    }

    /// Waits until the gate looks so.
    pub async fn until(&self, what: &str, reached: impl Fn(&Snapshot) -> bool) {
        gate::until(self.worker.gate(), what, reached).await;
    }

    /// Waits for running, waiting and queued requests in the whole worker.
    pub async fn holds(&self, running: u64, waiting: u64, queued: u64) {
        gate::holds(self.worker.gate(), running, waiting, queued).await;
    }

    /// Everyone has gone: gate and engine hold nothing, every request is
    /// accounted for, and one more is served.
    pub async fn idle(&self) {
        self.empty().await;
        let one = Planned {
            at: Duration::ZERO,
            prompt_tokens: 1,
            output_tokens: 1,
            rank: None,
            leaves_after: None,
        };
        let target = self.worker.url().parse().expect("a target");
        let client = Client::new("sim");
        let sent = client.send(&target, &one, Instant::now());
        let (outcome, _) = soon("one more answer", sent).await;
        assert_eq!(outcome, Outcome::Ok, "one more request");
        self.empty().await;
        for lane in self.snapshot().lanes {
            assert!(lane.conserves(), "{lane:?}");
        }
    }

    async fn empty(&self) {
        self.holds(0, 0, 0).await;
        self.until("nothing in any lane", |seen| {
            let held = |lane: &tidegate::LaneSnapshot| {
                lane.running + lane.waiting + lane.queued + lane.offered
            };
            seen.total(held) == 0
        })
        .await;
        self.engine_holds(0).await;
    }

    /// Waits until every request that the engine got has finished or left, and
    /// gives the three counts.
    pub async fn engine_settled(&self) -> (u64, u64, u64) {
        let start = Instant::now();
        loop {
            let ranks = self.engine.stats();
            let total = |count: fn(&RankCounts) -> u64| ranks.iter().map(count).sum::<u64>();
            let received = total(|rank| rank.received);
            let finished = total(|rank| rank.finished);
            let cancelled = total(|rank| rank.cancelled);
            if received == finished + cancelled {
                return (received, finished, cancelled);
            }
            let late = start.elapsed() > LONG;
            assert!(!late, "the engine never settled: {ranks:?}");
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until the engine has this many requests, batched and waiting, and,
    /// with none, no cache block in use.
    pub async fn engine_holds(&self, requests: usize) {
        let start = Instant::now();
        loop {
            let ranks = self.engine.stats();
            let held: usize = ranks.iter().map(|rank| rank.running + rank.waiting).sum();
            let blocks: u32 = ranks.iter().map(|rank| rank.kv_blocks_used).sum();
            if held == requests && (requests > 0 || blocks == 0) {
                return;
            }
            let late = start.elapsed() > LONG;
            assert!(!late, "the engine never held {requests}: {ranks:?}");
            sleep(Duration::from_millis(2)).await;
        }
    }
}
