//! How long a client may keep others waiting for what it sends.
//!
//! Time counts only while somebody waits for the client. It has the whole limit
//! for a first piece, and earns time back with what it sends: whoever keeps up
//! [`LEAST_RATE`] never runs out, and a byte now and then does not keep a place.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// What a client must send in a second on average, in bytes.
pub const LEAST_RATE: u64 = 1024;

/// The patience with one client about one body.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    spent: Duration,
    /// When the current wait began.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// A patience that ends after waits of `limit` together, what is earned aside.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            spent: Duration::ZERO,
            since: None,
            timer: None,
        }
    }

    /// How long it is.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// The client has sent `len` bytes.
    pub fn moved(&mut self, len: usize) {
        let Some(since) = self.since.take() else {
            return;
        };
        let earned = Duration::from_secs_f64(len as f64 / LEAST_RATE as f64);
        self.spent = (self.spent + since.elapsed()).saturating_sub(earned);
    }

    /// The client is waited for. Ready with the limit once it is over.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let end = since + self.limit.saturating_sub(self.spent);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep(self.limit)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn over(patience: &mut Patience) -> bool {
        poll_fn(|cx| Poll::Ready(patience.poll_over(cx).is_ready())).await
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_it_and_time_that_nobody_waits_does_not() {
        let mut patience = Patience::new(LIMIT);
        advance(LIMIT * 5).await;
        assert!(!over(&mut patience).await);
        advance(LIMIT - Duration::from_secs(1)).await;
        assert!(!over(&mut patience).await);
        advance(Duration::from_secs(2)).await;
        assert!(over(&mut patience).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_not_enough_and_the_least_rate_is() {
        let mut rounds = 0;
        let mut patience = Patience::new(LIMIT);
        while !over(&mut patience).await {
            advance(Duration::from_secs(1)).await;
            patience.moved(1);
            rounds += 1;
            assert!(rounds < 20, "a trickle is waited for");
        }
        let mut patience = Patience::new(LIMIT);
        for _ in 0..1000 {
            assert!(!over(&mut patience).await);
            advance(Duration::from_secs(1)).await;
            patience.moved(LEAST_RATE as usize);
        }
    }
}
