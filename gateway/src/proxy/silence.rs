//! How long an engine has been silent while it was its turn to speak.
//!
//! It is not its turn while the request's body waits for its client. Every piece
//! of the body that goes to the engine starts the time anew, and so does the last.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// When the engine's turn began; `None` while the client is waited for.
type Turn = Arc<Mutex<Option<Instant>>>;

/// Measures the silence of one engine about one request.
#[derive(Debug)]
pub struct Silence {
    limit: Duration,
    turn: Turn,
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    /// A silence that is over after `limit`, from now on.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            turn: Turn::new(Mutex::new(Some(Instant::now()))),
            timer: Box::pin(sleep(limit)),
        }
    }

    /// What tells it how the request's body goes.
    #[must_use]
    pub fn upload(&self) -> Upload {
        Upload(Arc::clone(&self.turn))
    }

    /// The engine said something.
    pub fn heard(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.limit);
    }

    /// Waits until the engine has been silent for too long, and says for how long.
    pub async fn too_long(&mut self) -> Duration {
        poll_fn(|cx| self.poll_too_long(cx)).await
    }

    /// The same, to be polled.
    pub fn poll_too_long(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            // A turn that begins later than now is not over before this looks again.
            let begun = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let end = begun.unwrap_or(now) + self.limit;
            if end <= now {
                return Poll::Ready(self.limit);
            }
            self.timer.as_mut().reset(end);
        }
    }
}

/// The request's body, as far as the silence is concerned. Dropped with it, after
/// which nobody waits for the client.
#[derive(Debug)]
pub struct Upload(Turn);

impl Upload {
    /// The next piece is yet to come from the client.
    pub fn waits(&self) {
        self.set(None);
    }

    /// A piece has gone to the engine, or the end.
    pub fn moved(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, turn: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.moved();
    }
}
