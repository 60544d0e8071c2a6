//! A connection that a request can have reset.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Lets what was written leave the socket before the reset overtakes it.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// The connection that a request came on.
#[derive(Clone, Default)]
pub(super) struct Connection {
    /// Cancelled to have the connection reset.
    pub reset: CancellationToken,
}

impl Connection {
    /// Resets the connection once what was written had time to leave. Never
    /// returns: the connection's task, and with it the caller, is dropped.
    pub async fn reset<T>(&self) -> T {
        sleep(BEFORE_RESET).await;
        self.reset.cancel();
        std::future::pending().await
    }
}

/// A TCP stream that closes with a reset once that was asked for.
pub(super) struct Socket {
    stream: TcpStream,
    reset: CancellationToken,
}

impl Socket {
    pub fn new(stream: TcpStream, reset: CancellationToken) -> Self {
        Self { stream, reset }
    }
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
