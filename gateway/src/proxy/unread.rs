//! Clients that may still be sending a body that nobody reads.
//!
//! To close a connection on unread bytes is to reset it, and many clients that find it
//! reset while they send never read the answer. So only the sending half is closed at
//! first, and what still comes is thrown away, within bounds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How much of a body that nobody wants is read and thrown away, and for how long.
pub const DISCARD_BYTES: usize = 1 << 20;
/// See [`DISCARD_BYTES`].
pub const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Whether a body on this connection was left before its end.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<AtomicBool>);

impl Unread {
    /// One was.
    pub fn mark(&self) {
        // Relaxed: read by the task that answers, after it has.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_marked(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Throws away what a client still sends.
#[derive(Debug)]
pub(super) struct Lingering {
    time: Pin<Box<Sleep>>,
    room: usize,
}

impl Lingering {
    pub(super) fn new() -> Self {
        Self {
            time: Box::pin(sleep(DISCARD_TIME)),
            room: DISCARD_BYTES,
        }
    }

    /// Ready once the client has closed too, or is no longer waited for.
    pub(super) fn poll_over(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut unwanted = [0; 16 << 10];
        while self.time.as_mut().poll(cx).is_pending() {
            match stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => break,
                Poll::Ready(Ok(())) => {}
            }
            match stream.try_read(&mut unwanted) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => break,
                Ok(read) => match self.room.checked_sub(read) {
                    Some(left) => self.room = left,
                    None => break,
                },
            }
        }
        Poll::Ready(())
    }
}
