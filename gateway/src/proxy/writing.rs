//! The sending half of a client's connection, which fails when the client does
//! not read, and is closed gently while it sends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Sleep, sleep};

use super::unread::{Lingering, Unread};

/// Writes that may make no progress for a time, and then fail.
#[derive(Debug)]
pub(super) struct Writing {
    half: OwnedWriteHalf,
    limit: Duration,
    /// Runs while a write waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
    unread: Unread,
    /// From the end of sending on, if a body was left unread.
    lingering: Option<Lingering>,
}

impl Writing {
    pub(super) fn new(half: OwnedWriteHalf, limit: Duration, unread: Unread) -> Self {
        Self {
            half,
            limit,
            stalled: None,
            unread,
            lingering: None,
        }
    }

    /// What `write` says, or a failure once nothing has moved for too long.
    fn within(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut OwnedWriteHalf>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.half), cx) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let limit = self.limit;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Writing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.within(cx, |half, cx| half.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.within(cx, |half, cx| half.poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.half.is_write_vectored()
    }

    // Sockets hold nothing back: this does not wait for the client.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.half).poll_shutdown(cx))?;
            if !this.unread.is_marked() {
                return Poll::Ready(Ok(()));
            }
        }
        let lingering = this.lingering.get_or_insert_with(Lingering::new);
        lingering.poll_over(this.half.as_ref(), cx).map(Ok)
    }
}
