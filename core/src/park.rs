//! Waiting on a plain thread for what a task would await.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sync::{Futex, Ordering};

const IDLE: u32 = 0;
const NOTIFIED: u32 = 1;

/// A thread parked on one word.
struct Parker(Futex);

impl Wake for Parker {
    fn wake(self: std::sync::Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &std::sync::Arc<Self>) {
        // PARK, Release: what the waker did before becomes visible to the
        // parked thread's next poll.
        // An RMW, so that it follows the parked thread's own swap in the word's
        // order: loom takes a plain store to be unordered with it.
        if self.0.swap(NOTIFIED, Ordering::Release) == IDLE {
            self.0.wake_one();
        }
    }
}

/// Runs a future to its end on this thread, parked on `atomic-wait` in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parker = std::sync::Arc::new(Parker(Futex::new(IDLE)));
    let waker = Waker::from(std::sync::Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // PARK, Acquire: pairs with the Release swap of the waker.
        while parker.0.swap(IDLE, Ordering::Acquire) == IDLE {
            parker.0.wait(IDLE);
        }
    }
}

/// Wakes a thread that sleeps in `thread::park_timeout`.
struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread for at most `timeout`; `None` if it has not
/// ended by then. A timed wait parks the thread, since `atomic-wait` has no timeout.
pub(crate) fn block_on_timeout<F: Future>(
    mut future: Pin<&mut F>,
    timeout: Duration,
) -> Option<F::Output> {
    // A timeout beyond what the clock can say is none.
    let deadline = Instant::now().checked_add(timeout);
    let waker = Waker::from(std::sync::Arc::new(Unparker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
