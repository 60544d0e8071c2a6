//! Those who listen for room: a stack that a releaser takes whole.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::task::Waker;

use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// How often room may have come, and whom to tell the next time.
#[derive(Debug)]
pub(crate) struct Listeners {
    events: AtomicU64,
    first: AtomicPtr<Listener>,
}

#[derive(Debug)]
struct Listener {
    waker: Waker,
    next: *mut Listener,
}

impl Listeners {
    pub(crate) fn new() -> Self {
        Listeners {
            events: AtomicU64::new(0),
            first: AtomicPtr::new(ptr::null_mut()),
        }
    }

    pub(crate) fn events(&self) -> u64 {
        // ROOM, Acquire: who sees the event sees the room.
        self.events.load(Ordering::Acquire)
    }

    /// Adds a listener. The caller looks at [`events`](Self::events) after it.
    pub(crate) fn add(&self, waker: Waker) {
        let new = Box::into_raw(Box::new(Listener {
            waker,
            next: ptr::null_mut(),
        }));
        // Relaxed: only the CAS decides.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: `new` is ours until the CAS publishes it.
            unsafe { (*new).next = first };
            // ROOM, AcqRel: publishes the listener; and an event that took the
            // stack before this is seen by the caller's next look.
            match self
                .first
                .compare_exchange_weak(first, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Room may have come: tells everyone. Runs foreign wakers.
    pub(crate) fn fire(&self) {
        // ROOM, Release: the room is there before the event is.
        self.events.fetch_add(1, Ordering::AcqRel);
        for waker in self.take_all() {
            // A waker that panics keeps no other from being woken.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    fn take_all(&self) -> impl Iterator<Item = Waker> {
        // ROOM, Acquire: the listeners as they were added. A write even where
        // there is none, so that who adds after it sees the event.
        let mut next = self.first.swap(ptr::null_mut(), Ordering::AcqRel);
        std::iter::from_fn(move || {
            if next.is_null() {
                return None;
            }
            // SAFETY: from `Box::into_raw`; the swap made the whole chain ours.
            let Listener { waker, next: rest } = *unsafe { Box::from_raw(next) };
            next = rest;
            Some(waker)
        })
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.take_all().for_each(drop);
    }
}
