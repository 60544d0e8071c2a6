//! Connections: accepting them, serving them, and seeing them out.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Buf;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::busy::{Busy, Counted};
use crate::cli::sparing::Sparing;
use crate::proxy::unread::Unread;
use crate::proxy::watched::watched;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// The most that is read from a client at a time, and the largest head.
const READ_BYTES: usize = 64 << 10;

/// Streams that an HTTP/2 client may have open at once: what waits at the gate is
/// to be seen there, and not to wait in the client.
const MAX_STREAMS: u32 = 10_000;

/// What an HTTP/2 client may send unasked, on one stream and in all. Streams whose
/// bodies nobody reads, because they are queued, then never take from the others
/// what these need to go on: together they fill their own windows and no more.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

// The largest window that HTTP/2 knows.
const _: () = assert!(CONNECTION_WINDOW < 1 << 31);

/// When a quiet connection is asked whether the client's machine is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How long a connection has to end by itself once it is told to.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often an HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The tasks of one server, and how they are told to end.
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

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Requests of clients, which a shutdown lets finish.
    Traffic,
    /// The server's own routes, and nothing else.
    Operations,
}

/// A body that can be sent to a client.
pub(crate) trait Sent:
    Body<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static
{
}

impl<B> Sent for B where
    B: Body<Data: Buf + Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static
{
}

/// Accepts connections until stopped, and has `answer` answer their requests, told
/// the client's address. A client may be `patience` slow. While draining too:
/// whoever comes then is told so, instead of finding nobody.
///
/// The future of an answer is dropped when its client leaves.
pub(super) async fn accept<F, B>(
    listener: TcpListener,
    purpose: Purpose,
    patience: Duration,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    tasks: Arc<Tasks>,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Sent,
{
    let warnings = Sparing::default();
    let mut server = auto::Builder::new(TokioExecutor::new());
    // How long a head may take is for `serve` to see, whatever the version.
    server
        .http1()
        .header_read_timeout(None)
        .max_buf_size(READ_BYTES);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(READ_BYTES as u32);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(left_out) = warnings.due(Instant::now()) {
                        warn!(%error, left_out, "could not accept a connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = tasks.stop.cancelled() => return,
        };
        let connection = serve(
            server.clone(),
            stream,
            peer.ip(),
            patience,
            answer.clone(),
            Arc::clone(&tasks),
        );
        if purpose == Purpose::Operations || tasks.drain.is_cancelled() {
            tasks.all.spawn(connection);
        } else {
            tasks.all.spawn(tasks.old.track_future(connection));
        }
    }
}

/// Serves one connection.
async fn serve<F, B>(
    server: auto::Builder<TokioExecutor>,
    stream: TcpStream,
    peer: IpAddr,
    patience: Duration,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
    tasks: Arc<Tasks>,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Sent,
{
    if let Err(error) = prepare(&stream) {
        debug!(%error, "a connection ended before it was served");
        return;
    }
    let (busy, unread) = (Busy::new(), Unread::default());
    // Who comes after the shutdown began is to be answered, not hung up on.
    let mut told = tasks.drain.is_cancelled();
    let mut quiet = false;
    let service = service_fn(|request| {
        let progress = busy.begin();
        let mut request: Request<Incoming> = request;
        // A stream of HTTP/2 ends by itself, and its connection goes on.
        if request.version() != Version::HTTP_2 {
            request.extensions_mut().insert(unread.clone());
        }
        let answer = answer(request, peer);
        async move {
            let answer = answer.await;
            Ok::<_, Infallible>(answer.map(|body| Counted::new(body, progress)))
        }
    });
    let (stream, watch) = watched(stream, patience, unread.clone());
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
            () = busy.quiet(if quiet { LAST_WORDS } else { patience }) => {
                if quiet {
                    debug!("a client asked for nothing for too long");
                    return;
                }
                quiet = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tasks.drain.cancelled(), if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tasks.stop.cancelled() => return,
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Tokens are small and must not wait for each other.
    stream.set_nodelay(true)?;
    // A machine that is gone says nothing.
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
