//! A frontend before workers, and what tests ask of both.

#[path = "../gate/mod.rs"]
mod gate;

use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::worker::{KnownEngine, Worker, WorkerConfig};
use tokio::time::{Instant, sleep};

pub use super::scripted::{Pages, Scripted};
pub use super::wire::Wire;
pub use gate::{LONG, holds, limits, soon};

/// The head of a stream of events, the last answer of its connection: each call is
/// then one of its own, as all others here are.
pub const EVENTS: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The whole answer to a request that does not stream.
pub const JSON: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// The same on a connection that goes on.
pub const KEPT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// The end of a chunked body.
pub const LAST: &str = "0\r\n\r\n";

/// One chunk of a chunked body, its size written as hyper writes it.
pub fn chunk(text: &str) -> String {
    format!("{:X}\r\n{text}\r\n", text.len())
}

/// The event with which a stream begins to generate.
pub fn token() -> String {
    chunk("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
}

/// A worker's refusal with this scope, and more header lines, each ended by CRLF.
pub fn refusal(scope: &str, headers: &str) -> String {
    let body = r#"{"message":"x","type":"Overloaded","code":529,"details":{"limit":"here"}}"#;
    format!(
        "HTTP/1.1 529 x\r\nconnection: close\r\ncontent-type: application/json\r\nx-admission-scope: {scope}\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A request with a body to the chat route, and more header lines.
pub fn post_of(body: &str, headers: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

/// A small request for the model `m`.
pub fn post(headers: &str) -> String {
    post_of(r#"{"model":"m"}"#, headers)
}

/// A frontend before these workers, checked and scraped often.
pub fn config(workers: &[String]) -> FrontendConfig {
    let urls = workers.iter().map(|url| url.parse().unwrap());
    let mut config = FrontendConfig::new(urls.collect());
    config.health_interval = Duration::from_millis(50);
    config.monitor.scrape_interval = Some(Duration::from_millis(50));
    config
}

/// A frontend, started.
pub struct Front {
    pub frontend: Frontend,
}

impl Front {
    /// Before scripted workers, all of which are well when this returns.
    pub async fn start(workers: &[&Scripted]) -> Self {
        Self::with(workers, |_| {}).await
    }

    pub async fn with(workers: &[&Scripted], change: impl FnOnce(&mut FrontendConfig)) -> Self {
        let urls: Vec<String> = workers.iter().map(|worker| worker.url()).collect();
        let front = Self::before(&urls, change);
        front.well(workers.len()).await;
        front
    }

    /// Before servers at these addresses.
    pub fn before(urls: &[String], change: impl FnOnce(&mut FrontendConfig)) -> Self {
        let mut config = config(urls);
        change(&mut config);
        let frontend = Frontend::start(config).unwrap();
        Self { frontend }
    }

    /// Waits until so many workers are well.
    pub async fn well(&self, count: usize) {
        let what = format!("{count} workers are well");
        until(&what, async || {
            let workers = self.frontend.workers();
            workers.iter().filter(|worker| worker.is_well()).count() == count
        })
        .await;
    }

    pub async fn connect(&self) -> Wire {
        Wire::connect(self.frontend.addr()).await
    }

    /// Sends these bytes on a connection of their own.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> Wire {
        let mut client = self.connect().await;
        client.write(bytes).await;
        client
    }

    /// Sends a small request.
    pub async fn post(&self) -> Wire {
        self.send(post("")).await
    }

    /// Asks for a page.
    pub async fn get(&self, path: &str) -> (u16, String) {
        get(self.frontend.addr(), path).await
    }

    /// The value of a series, by the beginning of its line.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let (_, page) = self.get("/metrics").await;
        value(&page, series)
    }

    /// Waits until a series has a value.
    pub async fn measures(&self, series: &str, expected: f64) {
        until(&format!("{series} is {expected}"), async || {
            self.metric(series).await == Some(expected)
        })
        .await;
    }
}

/// Asks a server for a page.
pub async fn get(addr: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut client = Wire::connect(addr).await;
    client
        .write(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
        .await;
    let status = client.head().await;
    (status, String::from_utf8(client.body().await).unwrap())
}

/// The value of a series in a page of metrics.
pub fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        (name == series).then(|| value.parse().ok())?
    })
}

/// Waits until something is so.
pub async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !reached().await {
        assert!(start.elapsed() < LONG, "never: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Reads an answer: its status and its JSON.
pub async fn answer(client: &mut Wire) -> (u16, Value) {
    let status = client.head().await;
    let body = client.body().await;
    let text = String::from_utf8_lossy(&body).into_owned();
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (status, json)
}

/// Asserts that an answer is a refusal with this status, and nothing else.
pub async fn assert_overloaded(client: &mut Wire, status: u16) -> Value {
    let (got, body) = answer(client).await;
    assert_eq!(got, status, "{body}");
    assert_eq!(client.header("content-type"), Some("application/json"));
    assert_eq!(body["message"], "Service temporarily overloaded");
    assert_eq!(body["type"], "Overloaded");
    assert_eq!(body["code"], status);
    body
}

/// Asserts that an answer says that nobody is there.
pub async fn assert_unavailable(client: &mut Wire) {
    let (got, body) = answer(client).await;
    assert_eq!(got, 503, "{body}");
    assert_eq!(body["type"], "Service Unavailable");
    assert_eq!(body["code"], 503);
}

/// A worker with these limits per rank before an engine.
pub fn worker(engine: &str, settings: tidegate::Settings, ranks: &[u32]) -> Worker {
    worker_with(engine, settings, ranks, |_| {})
}

/// The same, changed.
pub fn worker_with(
    engine: &str,
    settings: tidegate::Settings,
    ranks: &[u32],
    change: impl FnOnce(&mut WorkerConfig),
) -> Worker {
    let mut config = WorkerConfig::new(engine.parse().unwrap());
    config.settings = settings;
    config.known_engine = KnownEngine {
        ranks: Some(ranks.to_vec()),
        max_num_seqs: Some(4),
    };
    change(&mut config);
    Worker::start(config).unwrap()
}

/// The blocks that the first worker uses.
pub const BLOCKS: &str = "dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"0\",worker_type=\"aggregated\"}";
