//! An allocator that counts: what one thread allocates, and what is alive.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn allocated(bytes: usize) {
    // A thread in its last moments counts no more.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: passes everything on to `System`, and counts beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of this thread within `f`.
pub fn allocations<T>(f: impl FnOnce() -> T) -> (u64, T) {
    let before = CALLS.get();
    let result = f();
    (CALLS.get() - before, result)
}

/// Bytes that are allocated now.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The most bytes that were allocated at once since the last call.
pub fn peak() -> usize {
    PEAK.swap(live(), Ordering::Relaxed)
}
