//! One sampler for all who look: it starts with the first and stops with the last.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body::Frame;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decisions::Decisions;
use super::history::History;
use super::reading::Reading;

/// How often it samples.
pub const EVERY: Duration = Duration::from_secs(1);

/// So many may look at once. Each costs a connection, and the newest snapshot is
/// one for all.
pub const MOST_VIEWERS: usize = 32;

/// Said first: when a browser that lost the stream comes again.
const RETRY: &[u8] = b"retry: 1000\n\n";

/// Reads everything now.
pub(crate) type Source =
    Box<dyn Fn() -> futures_util::future::BoxFuture<'static, Reading> + Send + Sync>;

/// The sampler, running or not.
pub(crate) struct Live {
    source: Source,
    decisions: Arc<Decisions>,
    started: Instant,
    /// What viewers get, while there are any: the newest snapshot as an event.
    events: Mutex<Option<watch::Sender<Bytes>>>,
    /// Ends all streams, and the sampler.
    end: CancellationToken,
}

impl Live {
    pub(crate) fn new(source: Source, decisions: Arc<Decisions>, end: CancellationToken) -> Self {
        Self {
            source,
            decisions,
            started: Instant::now(),
            events: Mutex::new(None),
            end,
        }
    }

    /// Another viewer's events, unless there are too many. A viewer that is slow
    /// misses some, and gets the newest.
    pub(crate) fn watch(
        self: &Arc<Self>,
    ) -> Option<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<>> {
        let receiver = {
            let mut events = self.events();
            match &*events {
                Some(events) if events.receiver_count() >= MOST_VIEWERS => return None,
                Some(events) => {
                    let mut receiver = events.subscribe();
                    // What is there already is news to this one.
                    if !events.borrow().is_empty() {
                        receiver.mark_changed();
                    }
                    receiver
                }
                None => {
                    let (sender, receiver) = watch::channel(Bytes::new());
                    *events = Some(sender);
                    self.decisions.watch(true);
                    tokio::spawn(Arc::clone(self).sample());
                    receiver
                }
            }
        };
        let end = self.end.clone();
        let begin = Some(Bytes::from_static(RETRY));
        Some(stream::unfold((begin, receiver, end), |state| async move {
            let (begin, mut receiver, end) = state;
            if let Some(begin) = begin {
                return Some((Ok(Frame::data(begin)), (None, receiver, end)));
            }
            tokio::select! {
                biased;
                () = end.cancelled() => None,
                changed = receiver.changed() => {
                    changed.ok()?;
                    let event = receiver.borrow_and_update().clone();
                    Some((Ok(Frame::data(event)), (None, receiver, end)))
                }
            }
        }))
    }

    /// Samples until nobody looks any more.
    async fn sample(self: Arc<Self>) {
        let mut history = History::default();
        let mut due = Instant::now();
        let end = self.end.clone();
        while end
            .run_until_cancelled(tokio::time::sleep_until(due))
            .await
            .is_some()
        {
            let reading = (self.source)().await;
            let now = self.started.elapsed();
            let shown = history.observe(now, reading, self.decisions.last());
            let mut events = self.events();
            match &*events {
                Some(sender) if sender.receiver_count() > 0 => {
                    // A snapshot is always JSON.
                    let json = serde_json::to_string(&shown).unwrap_or_default();
                    sender.send_replace(Bytes::from(format!("data: {json}\n\n")));
                }
                _ => {
                    *events = None;
                    self.decisions.watch(false);
                    return;
                }
            }
            drop(events);
            due = (due + EVERY).max(Instant::now());
        }
        *self.events() = None;
        self.decisions.watch(false);
    }

    fn events(&self) -> MutexGuard<'_, Option<watch::Sender<Bytes>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn live() -> (Arc<Live>, Arc<AtomicU64>, CancellationToken) {
        let (samples, end) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let source: Source = Box::new({
            let samples = Arc::clone(&samples);
            move || {
                samples.fetch_add(1, Ordering::Relaxed);
                async { Reading::default() }.boxed()
            }
        });
        let live = Live::new(source, Arc::default(), end.clone());
        (Arc::new(live), samples, end)
    }

    async fn next(
        stream: &mut (impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Unpin),
    ) -> String {
        let frame = stream.next().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn it_samples_once_for_all_and_only_while_somebody_looks() {
        let (live, samples, _) = live();
        tokio::time::sleep(EVERY * 10).await;
        assert_eq!(samples.load(Ordering::Relaxed), 0);
        {
            let mut one = Box::pin(live.watch().unwrap());
            assert!(next(&mut one).await.starts_with("retry: "));
            let first = next(&mut one).await;
            assert!(first.starts_with("data: {\"version\""), "{first}");
            // The second sees what is there at once.
            let mut other = Box::pin(live.watch().unwrap());
            next(&mut other).await;
            assert_eq!(next(&mut other).await, first);
            for _ in 0..5 {
                assert_eq!(next(&mut one).await, next(&mut other).await);
            }
            assert_eq!(samples.load(Ordering::Relaxed), 6);
        }
        tokio::time::sleep(EVERY * 10).await;
        let seen = samples.load(Ordering::Relaxed);
        assert!(seen <= 7, "{seen}");
        assert!(live.events().is_none());
        let again = live.watch().unwrap();
        let mut again = pin!(again);
        next(&mut again).await;
        next(&mut again).await;
        assert_eq!(samples.load(Ordering::Relaxed), seen + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn viewers_are_bounded_and_those_that_leave_make_room() {
        let (live, ..) = live();
        let mut viewers: Vec<_> = (0..MOST_VIEWERS).map(|_| live.watch().unwrap()).collect();
        assert!(live.watch().is_none());
        viewers.pop();
        assert!(live.watch().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_ends_streams_and_sampler() {
        let (live, _, end) = live();
        let mut viewer = Box::pin(live.watch().unwrap());
        next(&mut viewer).await;
        next(&mut viewer).await;
        end.cancel();
        assert!(viewer.next().await.is_none());
        tokio::time::sleep(EVERY).await;
        assert!(live.events().is_none());
    }
}
