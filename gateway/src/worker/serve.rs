//! Connections: accepting them, serving them, and seeing them out.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::forward;
use super::shared::Shared;
use crate::proxy::watched::watched;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// How long a client may take for a request's head, and keep an HTTP/1.1
/// connection without a request.
const HEAD_TIME: Duration = Duration::from_secs(60);

/// How often an HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The tasks of one worker, and how they are told to end.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// All of them.
    pub(super) all: TaskTracker,
    /// Connections accepted before the shutdown began.
    pub(super) old: TaskTracker,
    /// Connections finish what they have begun and take nothing new.
    pub(super) drain: CancellationToken,
    /// Everything ends at once.
    pub(super) stop: CancellationToken,
}

/// Listens on `addr`.
pub(super) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = match addr {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart need not wait for the last run's connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket
        .bind(addr)
        .and_then(|()| socket.listen(BACKLOG))
        .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}")))
}

/// Accepts connections until stopped. While draining too: whoever comes then is
/// told so, instead of finding nobody.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, tasks: Arc<Tasks>) {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = tasks.stop.cancelled() => return,
        };
        let connection = serve(
            server.clone(),
            stream,
            Arc::clone(&shared),
            Arc::clone(&tasks),
        );
        if shared.is_draining() {
            tasks.all.spawn(connection);
        } else {
            tasks.all.spawn(tasks.old.track_future(connection));
        }
    }
}

async fn serve(
    server: auto::Builder<TokioExecutor>,
    stream: TcpStream,
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
) {
    // Tokens are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "a connection ended before it was served");
        return;
    }
    // Who comes after the shutdown began is to be answered, not hung up on.
    let mut told = shared.is_draining();
    let service = service_fn(|request| forward::handle(Arc::clone(&shared), request));
    let (stream, watch) = watched(stream);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    let mut gone = pin!(watch.gone());
    loop {
        tokio::select! {
            // What has come is acted on before the end is.
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(error, "a connection failed");
                }
                return;
            }
            // Dropping the connection drops its requests, wherever they are.
            () = gone.as_mut() => {
                debug!("a client left");
                return;
            }
            () = tasks.drain.cancelled(), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tasks.stop.cancelled() => return,
        }
    }
}
