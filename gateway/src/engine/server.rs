//! Starting and stopping an engine, and serving its connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api;
use super::config::EngineConfig;
use super::connection::{Connection, Socket};
use super::counts::RankCounts;
use super::misbehave::Misbehave;
use super::state::EngineState;

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
        let state = Arc::new(EngineState::start(config, &stop));
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
        self.state.set_misbehave(kind, rate);
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
    let socket = Socket::new(stream, reset.clone());
    let service = TowerToHyperService::new(router.layer(Extension(connection)));
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // A client that breaks off is no news to the engine.
        _ = builder.serve_connection(TokioIo::new(socket), service) => {}
        () = reset.cancelled() => {}
        () = stop.cancelled() => {}
    }
}
