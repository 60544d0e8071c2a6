//! Starting and stopping an engine, and its sockets.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api;
use super::batch::BatchConfig;
use super::live::{Rank, RankCounts};
use super::metrics::Metrics;
use super::misbehave::Misbehave;

/// Everything an engine is started with. `Default` is one fast-starting H100
/// with Llama-2-7B on a free port of the loopback interface, in real time.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The one model served.
    pub model: String,
    /// Data-parallel ranks, 1 to 1024.
    pub ranks: u32,
    /// Id of the first rank; the others follow it.
    pub first_rank: u32,
    /// The limits of each rank, all at least 1.
    pub batch: BatchConfig,
    /// Virtual seconds per second, finite and above 0.
    pub speed: f64,
    /// Seeds output lengths, text and the choice of requests that misbehave.
    pub seed: u64,
    /// For how long after the start everything but `/metrics` and
    /// `/v1/models` answers 503, as while a model loads.
    pub startup_delay: Duration,
    /// What befalls a share of the requests.
    pub misbehave: Option<Misbehave>,
    /// That share, from 0 to 1.
    pub misbehave_rate: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            model: "sim".to_owned(),
            ranks: 1,
            first_rank: 0,
            batch: BatchConfig::default(),
            speed: 1.0,
            seed: 0,
            startup_delay: Duration::ZERO,
            misbehave: None,
            misbehave_rate: 1.0,
        }
    }
}

impl EngineConfig {
    pub(super) fn rank_ids(&self) -> impl Iterator<Item = u32> {
        (0..self.ranks).map(|n| self.first_rank.wrapping_add(n))
    }

    /// # Errors
    /// `InvalidInput`, naming the setting and what it accepts.
    fn check(&self) -> io::Result<()> {
        let batch = &self.batch;
        let wrong = if !(1..=1024).contains(&self.ranks) {
            "ranks must be 1 to 1024"
        } else if self.first_rank.checked_add(self.ranks - 1).is_none() {
            "the last rank's id does not fit in 32 bits"
        } else if batch.max_num_seqs == 0 || batch.kv_blocks == 0 || batch.block_size == 0 {
            "max_num_seqs, kv_blocks and block_size must be at least 1"
        } else if batch.max_num_batched_tokens < batch.max_num_seqs {
            "max_num_batched_tokens must be at least max_num_seqs"
        } else if !(self.speed.is_finite() && self.speed >= 1e-3) {
            "speed must be a finite number of at least 0.001"
        } else if !(0.0..=1.0).contains(&self.misbehave_rate) {
            "misbehave_rate must be 0 to 1"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, wrong))
    }
}

/// What the request handlers share.
pub(super) struct EngineState {
    pub config: EngineConfig,
    pub ranks: Vec<Rank>,
    pub metrics: Metrics,
    pub started_unix: u64,
    ready_at: Instant,
    misbehave: Mutex<(Option<Misbehave>, f64)>,
    requests: AtomicU64,
}

impl EngineState {
    pub fn ready(&self) -> bool {
        Instant::now() >= self.ready_at
    }

    pub fn counts(&self) -> Vec<RankCounts> {
        self.ranks.iter().map(Rank::counts).collect()
    }

    /// A new request's id and its seed. Relaxed: only uniqueness matters.
    pub fn next_id(&self) -> (u64, u64) {
        let id = self.requests.fetch_add(1, Relaxed);
        let seed = self.config.seed.rotate_left(32) ^ id;
        (id, seed)
    }

    /// What befalls the request of this seed, by the engine's setting.
    pub fn misbehave(&self, seed: u64) -> Option<Misbehave> {
        let (kind, rate) = *self
            .misbehave
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let drawn = StdRng::seed_from_u64(!seed).random::<f64>() < rate;
        kind.filter(|_| drawn)
    }
}

/// A running engine. Dropping it stops it without waiting.
pub struct Engine {
    addr: SocketAddr,
    state: Arc<EngineState>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Engine {
    /// Binds the address and starts serving, on the current Tokio runtime.
    ///
    /// # Errors
    /// `InvalidInput` for a setting out of range, or what binding says.
    pub async fn start(config: EngineConfig) -> io::Result<Self> {
        config.check()?;
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let metrics = Metrics::new(&config);
        let ranks = config
            .rank_ids()
            .zip(&metrics.ranks)
            .map(|(id, m)| Rank::spawn(id, &config.batch, config.speed, m.clone(), stop.clone()))
            .collect();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = Instant::now();
        let state = Arc::new(EngineState {
            ranks,
            metrics,
            started_unix: unix.map_or(0, |unix| unix.as_secs()),
            ready_at: now.checked_add(config.startup_delay).unwrap_or(now),
            misbehave: Mutex::new((config.misbehave, config.misbehave_rate)),
            requests: AtomicU64::new(0),
            config,
        });
        let router = api::router(state.clone());
        tasks.spawn(accept(listener, router, stop.clone(), tasks.clone()));
        Ok(Self {
            addr,
            state,
            stop,
            tasks,
        })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its base URL, such as `http://127.0.0.1:8000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What each rank holds and has done, in order of rank ids.
    pub fn stats(&self) -> Vec<RankCounts> {
        self.state.counts()
    }

    /// From now on `kind` befalls a share `rate` (0 to 1) of the requests that
    /// do not ask for a misbehaviour themselves; `None` ends it.
    pub fn set_misbehave(&self, kind: Option<Misbehave>, rate: f64) {
        let mut setting = self
            .state
            .misbehave
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *setting = (kind, rate);
    }

    /// Closes the listener and every connection, in mid-answer too, and returns
    /// when all are closed. Cancelling the wait does not undo the stop.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The connection that a request came on.
#[derive(Clone, Default)]
pub(super) struct Connection {
    /// Cancelled to have the connection reset.
    pub reset: CancellationToken,
}

async fn accept(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                tasks.spawn(serve(stream, router.clone(), stop.clone()));
            }
            Err(error) => {
                // Out of file descriptors, most likely: connections will end.
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Only latency is lost if the socket refuses.
    let _ = stream.set_nodelay(true);
    let connection = Connection::default();
    let reset = connection.reset.clone();
    let socket = Socket {
        stream,
        reset: reset.clone(),
    };
    let service = TowerToHyperService::new(router.layer(Extension(connection)));
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // A client that breaks off is no news to the engine.
        _ = builder.serve_connection(TokioIo::new(socket), service) => {}
        () = reset.cancelled() => {}
        () = stop.cancelled() => {}
    }
}

/// A TCP stream that closes with a reset once that was asked for.
struct Socket {
    stream: TcpStream,
    reset: CancellationToken,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.is_cancelled() {
            // If it fails the connection ends in the ordinary way.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
