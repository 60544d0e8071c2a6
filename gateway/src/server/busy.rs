//! Whether a connection has a request in progress, from its head to the end of
//! its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::timeout;

/// The requests in progress on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Busy(Arc<watch::Sender<u32>>);

impl Busy {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more, until what this returns is dropped.
    pub(crate) fn begin(&self) -> InProgress {
        self.0.send_modify(|count| *count += 1);
        InProgress(self.clone())
    }

    /// Waits until there has been none for `time`.
    pub(crate) async fn quiet(&self, time: Duration) {
        let mut seen = self.0.subscribe();
        // The sender is ours, so that waiting cannot fail.
        while seen.wait_for(|count| *count == 0).await.is_ok()
            && timeout(time, seen.changed()).await.is_ok()
        {}
    }
}

/// A request in progress.
#[derive(Debug)]
pub(crate) struct InProgress(Busy);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// The body of an answer, which ends the request's progress.
#[derive(Debug)]
pub(crate) struct Counted<B> {
    body: B,
    _progress: InProgress,
}

impl<B> Counted<B> {
    pub(crate) fn new(body: B, progress: InProgress) -> Self {
        Self {
            body,
            _progress: progress,
        }
    }
}

impl<D: Buf, B: Body<Data = D> + Unpin> Body for Counted<B> {
    type Data = D;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const TIME: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_quiet_when_nothing_was_in_progress_for_the_time() {
        let busy = Busy::new();
        let start = Instant::now();
        let (one, other) = (busy.begin(), busy.begin());
        let ended = tokio::spawn({
            let busy = busy.clone();
            async move {
                tokio::time::sleep(TIME * 3).await;
                drop(one);
                tokio::time::sleep(TIME).await;
                drop(other);
                tokio::time::sleep(TIME / 2).await;
                drop(busy.begin());
            }
        });
        busy.quiet(TIME).await;
        ended.await.unwrap();
        assert_eq!(start.elapsed().as_secs(), (TIME * 5 + TIME / 2).as_secs());
    }
}
