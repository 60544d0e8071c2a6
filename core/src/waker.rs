//! Where a waiter leaves its waker, and whoever offers it capacity finds it.
//!
//! The protocol is that of `AtomicWaker` in the futures crates: two bits elect
//! who may touch the waker, and whoever comes while the other is there leaves
//! the work to it.

use std::task::Waker;

use crate::sync::{AtomicU32, Ordering, UnsafeCell};

const FREE: u32 = 0;
const REGISTERING: u32 = 1;
const TAKING: u32 = 2;

/// A place for one waker: one side registers, the other takes.
#[derive(Debug)]
pub(crate) struct WakerCell {
    state: AtomicU32,
    /// Of whoever has the cell: without it there would be a gap.
    pub(crate) beside: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: `waker` is only touched by whoever moved `state` from FREE.
unsafe impl Sync for WakerCell {}
// SAFETY: a waker may be sent, and nothing else is in the cell.
unsafe impl Send for WakerCell {}

impl WakerCell {
    pub(crate) fn new() -> Self {
        WakerCell {
            state: AtomicU32::new(FREE),
            beside: AtomicU32::new(0),
            waker: UnsafeCell::new(None),
        }
    }

    /// Leaves `waker` for the next [`take`](Self::take). Gives one back to be
    /// woken or dropped by the caller: true means woken, since a `take` came
    /// meanwhile.
    pub(crate) fn register(&self, waker: Waker) -> (Option<Waker>, bool) {
        // WAKER, Acquire: the cell as the last one left it.
        let entered =
            self.state
                .compare_exchange(FREE, REGISTERING, Ordering::Acquire, Ordering::Acquire);
        if entered.is_err() {
            return (Some(waker), true);
        }
        let old = self.waker.with_mut(|cell| {
            // SAFETY: REGISTERING is ours, so nobody else touches the cell.
            unsafe { (*cell).replace(waker) }
        });
        // WAKER, AcqRel: a `take` after this finds the waker; one that came
        // before left TAKING here, and what it published is seen by the poll
        // that the waker brings about.
        let left =
            self.state
                .compare_exchange(REGISTERING, FREE, Ordering::AcqRel, Ordering::Acquire);
        if left.is_ok() {
            return (old, false);
        }
        let waker = self.waker.with_mut(|cell| {
            // SAFETY: REGISTERING is still ours; the taker left the cell to us.
            unsafe { (*cell).take() }
        });
        // WAKER, AcqRel: hands the cell on.
        self.state.swap(FREE, Ordering::AcqRel);
        (waker, true)
    }

    /// Takes the waker out, if there is one and nobody is just registering.
    pub(crate) fn take(&self) -> Option<Waker> {
        // WAKER, AcqRel: publishes what the waiter is to see, to a registrar
        // that comes after; and finds what one before left.
        if self.state.fetch_or(TAKING, Ordering::AcqRel) != FREE {
            return None;
        }
        let waker = self.waker.with_mut(|cell| {
            // SAFETY: TAKING from FREE is ours.
            unsafe { (*cell).take() }
        });
        // WAKER, Release: hands the cell on.
        self.state.fetch_and(!TAKING, Ordering::Release);
        waker
    }
}
