//! The waker's cell alone: who leaves a waker, and who takes it.
#![cfg(tidegate_loom)]

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use tidegate::model::WakerCell;
use tidegate_loom_tests::check;

#[test]
fn whoever_registers_is_woken_or_sees_for_itself() {
    check(5, "register against take: no wake-up is lost", || {
        let shared = Arc::new((WakerCell::new(), AtomicBool::new(false)));
        let offering = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let (cell, offered) = &*offering;
            // Relaxed: the cell alone carries the news.
            offered.store(true, Ordering::Relaxed);
            if let Some(waker) = cell.take() {
                waker.wake();
            }
        });
        let (cell, offered) = &*shared;
        loom::future::block_on(poll_fn(|context| {
            if offered.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            if cell.register(context.waker()) {
                context.waker().wake_by_ref();
            }
            if offered.load(Ordering::Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        thread.join().unwrap();
    });
}

#[test]
fn a_waker_is_taken_once() {
    check(5, "the turn and a leaver, at one waker", || {
        let cell = Arc::new(WakerCell::new());
        cell.register(Waker::noop());
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || other.take().is_some());
        let mine = cell.take().is_some();
        let theirs = thread.join().unwrap();
        assert!(mine != theirs);
    });
}

#[test]
fn a_waker_replaced_under_two_takers_is_not_lost() {
    check(3, "three threads at one cell", || {
        let cell = Arc::new(WakerCell::new());
        cell.register(Waker::noop());
        let take = || {
            let other = Arc::clone(&cell);
            thread::spawn(move || u32::from(other.take().is_some()))
        };
        let takers = [take(), take()];
        let again = cell.register(Waker::noop());
        let taken: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        let left = u32::from(cell.take().is_some());
        assert!(taken + left >= 1 || again, "nobody knows of the waiter");
    });
}
