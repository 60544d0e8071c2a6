//! A scripted engine, and what every test starts and ends with.

// Each test file uses its own part of this.
#![allow(dead_code)]

#[path = "../gate/mod.rs"]
mod gate;

use std::net::SocketAddr;

use tidegate::{LaneSnapshot, Settings, Snapshot};
use tidegate_gateway::worker::{KnownEngine, Worker, WorkerConfig};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub use super::wire::Wire;
pub use gate::{limits, soon};

/// The head of a stream of events.
pub const EVENTS: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The whole answer to a request that does not stream.
pub const JSON: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// One chunk of a chunked body, its size written as hyper writes it.
pub fn chunk(text: &str) -> String {
    format!("{:X}\r\n{text}\r\n", text.len())
}

/// The event with which a stream begins to generate.
pub fn token() -> String {
    chunk("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
}

/// The end of a chunked body.
pub const LAST: &str = "0\r\n\r\n";

/// An engine whose every answer is written by the test.
pub struct Engine {
    pub addr: SocketAddr,
    calls: mpsc::UnboundedReceiver<Wire>,
}

impl Engine {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, calls) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let mut call = Wire::new(stream);
                    if call.try_head().await.is_some() {
                        let _ = sender.send(call);
                    }
                });
            }
        });
        Self { addr, calls }
    }

    /// The next connection with a request on it, its head read.
    pub async fn call(&mut self) -> Wire {
        soon("a call to the engine", self.calls.recv())
            .await
            .unwrap()
    }

    /// Takes the next call, its body too, and answers it.
    pub async fn answer(&mut self, answer: &str) {
        let mut call = self.call().await;
        call.body().await;
        call.write(answer).await;
    }

    /// No call has come.
    pub fn is_idle(&mut self) -> bool {
        self.calls.try_recv().is_err()
    }
}

/// A worker before a scripted engine.
pub struct Bench {
    pub engine: Engine,
    pub worker: Worker,
}

impl Bench {
    /// Limits per rank, with one rank.
    pub async fn start(running: u32, waiting: u32, queued: u32) -> Self {
        Self::with(limits(running, waiting, queued), &[0], |_| {}).await
    }

    pub async fn with(
        settings: Settings,
        ranks: &[u32],
        change: impl FnOnce(&mut WorkerConfig),
    ) -> Self {
        let engine = Engine::start().await;
        let mut config = config(engine.addr);
        config.settings = settings;
        config.known_engine = KnownEngine {
            ranks: Some(ranks.to_vec()),
            max_num_seqs: Some(4),
        };
        change(&mut config);
        let worker = Worker::start(config).unwrap();
        let bench = Self { engine, worker };
        let lanes = ranks.len() + 1;
        bench
            .until("the ranks are known", |seen| seen.lanes.len() == lanes)
            .await;
        bench
    }

    /// Sends a request with a small body to a gated route.
    pub async fn post(&self) -> Wire {
        self.post_with("").await
    }

    /// The same with more header lines, each ended by CRLF.
    pub async fn post_with(&self, headers: &str) -> Wire {
        let mut client = self.connect().await;
        client.write(post(headers)).await;
        client
    }

    pub async fn connect(&self) -> Wire {
        Wire::connect(self.worker.addr()).await
    }

    pub fn snapshot(&self) -> Snapshot {
        self.worker.gate().snapshot()
    }

    pub fn counts(&self) -> (u64, u64, u64) {
        let seen = self.snapshot().worker;
        (seen.running, seen.waiting, seen.queued)
    }

    /// Waits until the gate looks so.
    pub async fn until(&self, what: &str, reached: impl Fn(&Snapshot) -> bool) {
        gate::until(self.worker.gate(), what, reached).await;
    }

    /// Waits for running, waiting and queued requests in the whole worker.
    pub async fn holds(&self, running: u64, waiting: u64, queued: u64) {
        gate::holds(self.worker.gate(), running, waiting, queued).await;
    }

    /// A stream that has sent its first token.
    pub async fn streaming(&mut self) -> (Wire, Wire) {
        let client = self.post().await;
        let mut call = self.engine.call().await;
        call.body().await;
        call.write(EVENTS).await;
        call.write(token()).await;
        let mut client = client;
        assert_eq!(client.head().await, 200);
        client.expect(token()).await;
        (client, call)
    }

    /// Everyone has gone: nothing is held, every request is accounted for, and
    /// one more is served.
    pub async fn idle(&mut self) {
        self.holds(0, 0, 0).await;
        let mut client = self.post().await;
        self.engine.answer(JSON).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        self.holds(0, 0, 0).await;
        for lane in self.snapshot().lanes {
            assert!(lane.conserves(), "{lane:?}");
            assert_eq!(lane.offered, 0, "{lane:?}");
        }
    }

    pub fn total(&self, counter: impl Fn(&LaneSnapshot) -> u64) -> u64 {
        self.snapshot().total(counter)
    }
}

/// A configuration for an engine at `addr`.
pub fn config(addr: SocketAddr) -> WorkerConfig {
    WorkerConfig::new(format!("http://{addr}").parse().unwrap())
}

/// A request with a small body to a gated route, and more header lines.
pub fn post(headers: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n{headers}\r\n{{}}"
    )
}
