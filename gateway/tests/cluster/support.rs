//! Workers that announce themselves, frontends that hear them, and what tests ask of both.

#[path = "../gate/mod.rs"]
mod gate;

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_gateway::cluster::{NatsConfig, PublishConfig, SubscribeConfig};
use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::engine::{Engine, EngineConfig};
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::load::{Client, Outcome, Planned};
use tidegate_gateway::monitor::Busy;
use tidegate_gateway::scrape::page::{Fetch, PageUrl};
use tidegate_gateway::worker::{Worker, WorkerConfig};
use tokio::time::{Instant, sleep};

pub use gate::{LONG, soon};

/// The silence after which workers of tests are taken for dead.
pub const TTL: Duration = Duration::from_millis(600);

/// Waits until something is so.
pub async fn until(what: &str, reached: impl AsyncFnMut() -> bool) {
    within(LONG, what, reached).await;
}

/// The same, with a time of its own.
pub async fn within(time: Duration, what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !reached().await {
        assert!(start.elapsed() < time, "never: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A simulated engine of two ranks.
pub async fn engine() -> Engine {
    engine_with(|_| {}).await
}

pub async fn engine_with(change: impl FnOnce(&mut EngineConfig)) -> Engine {
    let defaults = EngineConfig::default();
    let batch = BatchConfig {
        max_num_seqs: 8,
        ..defaults.batch
    };
    let mut config = EngineConfig {
        ranks: 2,
        batch,
        ..defaults
    };
    change(&mut config);
    Engine::start(config).await.unwrap()
}

/// A worker that announces itself under this name.
pub fn worker(engine: &Engine, nats: NatsConfig, name: &str) -> Worker {
    worker_with(engine, nats, name, |_| {})
}

pub fn worker_with(
    engine: &Engine,
    nats: NatsConfig,
    name: &str,
    change: impl FnOnce(&mut WorkerConfig),
) -> Worker {
    let mut config = WorkerConfig::new(engine.url().parse().unwrap());
    config.cluster = Some(PublishConfig {
        name: Some(name.parse().unwrap()),
        member_ttl: TTL,
        load_interval: Duration::from_millis(50),
        ..PublishConfig::new(nats)
    });
    change(&mut config);
    Worker::start(config).unwrap()
}

/// A frontend that knows nobody but those who announce themselves from this machine.
pub fn frontend(nats: NatsConfig) -> Front {
    frontend_with(nats, |_| {})
}

pub fn frontend_with(nats: NatsConfig, change: impl FnOnce(&mut FrontendConfig)) -> Front {
    let mut config = FrontendConfig::new(Vec::new());
    config.health_interval = Duration::from_millis(50);
    // Whatever is known of loads came over NATS.
    config.monitor.scrape_interval = None;
    config.cluster = Some(SubscribeConfig {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..SubscribeConfig::new(nats)
    });
    change(&mut config);
    Front(Frontend::start(config).unwrap())
}

pub struct Front(pub Frontend);

impl Front {
    pub fn well(&self) -> usize {
        let workers = self.0.workers();
        workers.iter().filter(|worker| worker.is_well()).count()
    }

    /// Waits until it has so many workers, all of them well.
    pub async fn has(&self, count: usize) {
        until(&format!("{count} workers, all well"), async || {
            (self.0.workers().len(), self.well()) == (count, count)
        })
        .await;
    }

    /// Says that a worker is there, again and again, until this knows: it may be about to
    /// connect. Then it has one worker more.
    pub async fn hears(&self, client: &async_nats::Client, name: &str, mut member: Value) {
        let count = self.well() + 1;
        until("a worker is heard", async || {
            let sequence = member["sequence"].as_u64().unwrap();
            member["sequence"] = (sequence + 1).into();
            say(client, &format!("$KV.tidegate_members.{name}"), &member).await;
            self.well() == count
        })
        .await;
    }

    /// Which workers it has.
    pub fn ids(&self) -> Vec<u64> {
        self.0.workers().iter().map(|worker| worker.id).collect()
    }

    /// Requests that the first worker has, as it said itself.
    pub fn running(&self) -> Option<u64> {
        let members = self.0.monitor().members();
        Some(members.first()?.load().running)
    }

    pub fn busy(&self) -> Option<Busy> {
        let members = self.0.monitor().members();
        Some(members.first()?.busy("sim"))
    }

    pub async fn page(&self) -> String {
        page(&self.0.url()).await
    }

    /// The value of one of NATS' series, by the end of its name.
    pub async fn counts(&self, series: &str) -> f64 {
        value(
            &self.page().await,
            &format!("dynamo_frontend_cluster_{series}"),
        )
    }

    pub async fn drops(&self, reason: &str) -> f64 {
        self.counts(&format!("dropped_total{{reason=\"{reason}\"}}"))
            .await
    }

    /// Sends a request of so many tokens, and says what became of it.
    pub async fn send(&self, tokens: u32) -> Outcome {
        let one = Planned {
            at: Duration::ZERO,
            prompt_tokens: 16,
            output_tokens: tokens,
            rank: None,
            leaves_after: None,
        };
        let target = self.0.url().parse().unwrap();
        Client::new("sim")
            .send(&target, &one, Instant::now())
            .await
            .0
    }
}

/// The metrics of a server.
pub async fn page(url: &str) -> String {
    let page: PageUrl = format!("{url}/metrics").parse().unwrap();
    Fetch::new(page).unwrap().text(LONG).await.unwrap()
}

/// The value of a series in a page of metrics, or −1.
pub fn value(page: &str, series: &str) -> f64 {
    let of = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        (name == series).then(|| value.parse().ok())?
    };
    page.lines().find_map(of).unwrap_or(-1.0)
}

/// A worker's announcement, as anybody may say it.
pub fn announcement(name: &str, url: &str, incarnation: u64, sequence: u64) -> Value {
    json!({ "v": 1, "worker": name, "url": url, "incarnation": incarnation,
        "sequence": sequence, "ttl_ms": 60_000, "ranks": [0, 1], "models": ["sim"] })
}

/// A load event with so many requests on rank 0.
pub fn load(name: &str, incarnation: u64, sequence: u64, running: u64) -> Value {
    json!({ "v": 1, "worker": name, "incarnation": incarnation, "sequence": sequence,
        "uptime_ms": sequence * 10, "room": true,
        "ranks": [{ "rank": 0, "running": running }, { "rank": 1, "running": 0 }] })
}

/// Says something at a subject.
pub async fn say(client: &async_nats::Client, subject: &str, said: impl ToString) {
    let said = said.to_string().into_bytes();
    client
        .publish(subject.to_owned(), said.into())
        .await
        .unwrap();
    client.flush().await.unwrap();
}
