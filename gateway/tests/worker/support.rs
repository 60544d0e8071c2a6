//! A scripted engine, a plain client, and what every test starts and ends with.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate::{LaneSnapshot, Settings, Snapshot};
use tidegate_gateway::worker::report::KnownEngine;
use tidegate_gateway::worker::{Worker, WorkerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What is waited for at most. Only a test that fails takes this long.
pub const LONG: Duration = Duration::from_secs(5);

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

/// Fails the test instead of hanging it.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LONG, future)
        .await
        .unwrap_or_else(|_| panic!("not within {LONG:?}: {what}"))
}

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

/// One end of a connection: what was read is kept until it is asked for.
pub struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
    /// The last head read, lower case.
    pub head: String,
}

impl Wire {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            read: Vec::new(),
            head: String::new(),
        }
    }

    pub async fn connect(addr: SocketAddr) -> Self {
        Self::new(TcpStream::connect(addr).await.unwrap())
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads more; `false` once the other end has closed or reset.
    async fn more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.read).await, Ok(read) if read > 0)
    }

    async fn try_head(&mut self) -> Option<()> {
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        self.head = String::from_utf8(head).unwrap().to_lowercase();
        Some(())
    }

    /// Reads a head; the status, if it is a response's.
    pub async fn head(&mut self) -> u16 {
        soon("a head", self.try_head())
            .await
            .expect("a head, not the end");
        let status = self.head.split(' ').nth(1).unwrap_or_default();
        status.parse().unwrap_or_default()
    }

    /// A header of the last head.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (this, value) = line.split_once(':')?;
            (this == name).then(|| value.trim())
        })
    }

    /// Reads exactly this, or fails.
    pub async fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        soon("the expected bytes", async {
            while self.read.len() < bytes.len() && self.more().await {}
        })
        .await;
        let got = &self.read[..bytes.len().min(self.read.len())];
        assert_eq!(String::from_utf8_lossy(got), String::from_utf8_lossy(bytes),);
        self.read.drain(..bytes.len());
    }

    /// Reads the body that the last head announces, and gives it decoded.
    pub async fn body(&mut self) -> Vec<u8> {
        if let Some(len) = self.header("content-length") {
            let len: usize = len.parse().unwrap();
            soon("a body", async {
                while self.read.len() < len {
                    assert!(self.more().await, "the body broke off");
                }
            })
            .await;
            return self.read.drain(..len).collect();
        }
        if self.header("transfer-encoding") != Some("chunked") {
            return Vec::new();
        }
        let mut body = Vec::new();
        loop {
            let piece = soon("a chunk", self.chunk()).await;
            if piece.is_empty() {
                return body;
            }
            body.extend(piece);
        }
    }

    async fn chunk(&mut self) -> Vec<u8> {
        loop {
            if let Some(at) = find(&self.read, b"\r\n") {
                let size = std::str::from_utf8(&self.read[..at]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let end = at + 2 + size + 2;
                if self.read.len() >= end {
                    let piece: Vec<u8> = self.read.drain(..end).collect();
                    return piece[at + 2..end - 2].to_vec();
                }
            }
            assert!(self.more().await, "the chunked body broke off");
        }
    }

    /// The other end closes or resets, whatever it sends before.
    pub async fn closed(&mut self) {
        soon("the end of the connection", async {
            while self.more().await {}
        })
        .await;
    }

    /// Nothing more has come within a moment.
    pub async fn is_silent(&mut self) -> bool {
        let came = timeout(Duration::from_millis(50), self.more()).await;
        self.read.is_empty() && came.is_err()
    }

    /// Nothing is left unread.
    pub fn has_nothing_left(&self) -> bool {
        self.read.is_empty()
    }

    /// Ends with a reset instead of an orderly close.
    pub fn reset(self) {
        #[allow(deprecated)] // tokio's replacement is not in the version in use
        let _ = self.stream.set_linger(Some(Duration::ZERO));
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Limits per rank: running, waiting, queued.
pub fn limits(running: u32, waiting: u32, queued: u32) -> Settings {
    Settings {
        engine_request_limit: Some(running),
        engine_request_waiting_limit: Some(waiting),
        request_queue_limit: Some(queued),
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
        let start = std::time::Instant::now();
        while !reached(&self.snapshot()) {
            let seen = self.snapshot();
            assert!(
                start.elapsed() < LONG,
                "never: {what}; the gate has {seen:?}"
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for running, waiting and queued requests in the whole worker.
    pub async fn holds(&self, running: u64, waiting: u64, queued: u64) {
        let what = format!("{running} running, {waiting} waiting, {queued} queued");
        self.until(&what, |seen| {
            let worker = seen.worker;
            (worker.running, worker.waiting, worker.queued) == (running, waiting, queued)
        })
        .await;
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
