//! A client's connection that is known to end even while nobody reads it.
//!
//! An HTTP server stops reading while it holds bytes that nobody wants yet: the
//! next request of a client that pipelines, a stray line end, a body whose reader
//! waits. The end of the stream lies behind those bytes, so reading would not
//! find it. The kernel knows of it all the same, and says so beside the data.
//!
//! So the end is the watch's to tell and not the reader's, and whatever came
//! before it has been acted on by then. An end of sending alone, a half-close, is
//! taken for leaving, as it is by the server when it reads one.
//!
//! Only Linux tells; elsewhere the reader finds the end when it gets there. And an
//! orderly close behind more bytes than the receive window holds is not on its way
//! yet: it comes when someone reads on. A reset comes at once.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, join};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::unread::Unread;
use super::writing::Writing;

/// Whether the kernel tells of the end beside the data.
const TOLD: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The connection, and the watch over it, which the task that reads must await
/// as well: it alone tells the end. Writing fails once the client has taken
/// nothing for `limit`; closing waits for a client that may still send what is `unread`.
#[must_use]
pub fn watched(
    stream: TcpStream,
    limit: Duration,
    unread: Unread,
) -> (impl AsyncRead + AsyncWrite + Unpin + Send, Watch) {
    let (read, write) = stream.into_split();
    let read = Arc::new(read);
    let reading = Reading(Arc::clone(&read));
    (
        join(reading, Writing::new(write, limit, unread)),
        Watch(read),
    )
}

/// Sees a client leave.
#[derive(Debug)]
pub struct Watch(Arc<OwnedReadHalf>);

impl Watch {
    /// Waits until the client has closed or reset the connection. Takes no bytes.
    pub async fn gone(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        // An interest in urgent data is one in the end of the stream too, and not
        // in the data before it. Urgent data itself does not reach the interest:
        // the socket was not registered for it. An error is the runtime's end.
        let _ = self.0.ready(tokio::io::Interest::PRIORITY).await;
        if !TOLD {
            pending().await
        }
    }
}

/// The reading half, shared with the watch.
#[derive(Debug)]
struct Reading(Arc<OwnedReadHalf>);

impl AsyncRead for Reading {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.0).as_ref();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) if TOLD => return Poll::Pending,
                Err(error) if TOLD && error.kind() == io::ErrorKind::ConnectionReset => {
                    return Poll::Pending;
                }
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}
