//! Answers that their client does not take.
//!
//! A stream of an HTTP/2 connection whose client opens no window is not asked for
//! its next piece, and a body that is not asked cannot end by itself. So a timer
//! beside it takes away what it holds: the slot is free and the engine's
//! connection closed, whatever becomes of the stream.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::relay::{Hold, Relay, RelayError};

/// A [`Relay`] whose client must ask for more within a time.
#[derive(Debug)]
pub struct Paced<H> {
    inner: Arc<Mutex<Inner<H>>>,
    limit: Duration,
    _timer: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Inner<H> {
    /// `None` once it was taken away.
    relay: Option<Relay<H>>,
    /// Since when it is the client's turn; `None` while it is the engine's.
    turn: Option<Instant>,
}

impl<H: Hold + Send + 'static> Paced<H> {
    /// Lets the client take `limit` between two pieces of `relay`.
    #[must_use]
    pub fn new(relay: Relay<H>, limit: Duration) -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            relay: Some(relay),
            turn: Some(Instant::now()),
        }));
        let timer = tokio::spawn(take_away(Arc::clone(&inner), limit));
        Self {
            inner,
            limit,
            _timer: AbortOnDropHandle::new(timer),
        }
    }
}

async fn take_away<H>(inner: Arc<Mutex<Inner<H>>>, limit: Duration) {
    loop {
        let now = Instant::now();
        let end = {
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            let end = inner.turn.unwrap_or(now) + limit;
            if end <= now {
                // Dropped below, when the lock is free.
                Err(inner.relay.take())
            } else {
                Ok(end)
            }
        };
        match end {
            Ok(end) => sleep_until(end).await,
            Err(relay) => return drop(relay),
        }
    }
}

impl<H> Paced<H> {
    fn with<T>(&self, ask: impl FnOnce(&mut Inner<H>) -> T) -> T {
        ask(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<H: Hold> Body for Paced<H> {
    type Data = Bytes;
    type Error = RelayError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        let limit = self.limit;
        self.with(|inner| {
            let Some(relay) = &mut inner.relay else {
                return Poll::Ready(Some(Err(RelayError::Unread(limit))));
            };
            inner.turn = None;
            let next = ready!(Pin::new(relay).poll_frame(cx));
            inner.turn = Some(Instant::now());
            Poll::Ready(next)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.with(|inner| inner.relay.as_ref().is_some_and(Relay::is_end_stream))
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|inner| {
            inner
                .relay
                .as_ref()
                .map_or_else(SizeHint::default, Relay::size_hint)
        })
    }
}
