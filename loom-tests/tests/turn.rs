//! The turn's word and the bell alone.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tidegate::model::Turn;
use tidegate_loom_tests::check;

/// Work that is left for whoever has the turn.
struct Desk {
    turn: Turn,
    work: AtomicU32,
    /// How much of it the turns have seen; the turn's alone.
    done: UnsafeCell<u32>,
}

// SAFETY: `done` is only touched by whoever has the turn: what the models check.
unsafe impl Sync for Desk {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Desk {}

impl Desk {
    fn new() -> Arc<Desk> {
        Arc::new(Desk {
            turn: Turn::new(),
            work: AtomicU32::new(0),
            done: UnsafeCell::new(0),
        })
    }

    /// Relaxed: the ring carries the news.
    fn add_work(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    fn run_turn(&self) {
        loop {
            let work = self.work.load(Ordering::Relaxed);
            // SAFETY: the turn is ours.
            self.done.with_mut(|done| unsafe { *done = work });
            if self.turn.try_end() {
                return;
            }
        }
    }

    fn assist(&self) {
        if self.turn.ring() && self.turn.try_start() {
            self.run_turn();
        }
    }

    fn finished(&self, work: u32) {
        assert!(self.turn.is_idle());
        // SAFETY: everybody else has ended.
        self.done.with(|done| assert_eq!(unsafe { *done }, work));
    }
}

#[test]
fn work_rung_for_is_done_and_two_turns_never_overlap() {
    check(5, "who comes while a turn ends is not forgotten", || {
        let desk = Desk::new();
        let other = Arc::clone(&desk);
        let thread = thread::spawn(move || {
            other.add_work();
            other.assist();
        });
        desk.add_work();
        desk.assist();
        thread.join().unwrap();
        desk.finished(2);
    });
}

#[test]
fn three_who_ring_run_one_turn_at_a_time() {
    check(3, "three threads: every ring is answered", || {
        let desk = Desk::new();
        let ring = || {
            let other = Arc::clone(&desk);
            thread::spawn(move || {
                other.add_work();
                other.assist();
            })
        };
        let threads = [ring(), ring()];
        desk.add_work();
        desk.assist();
        for thread in threads {
            thread.join().unwrap();
        }
        desk.finished(3);
    });
}

#[test]
fn a_change_within_the_turn_excludes_every_turn() {
    check(5, "moving the limits against a ring", || {
        let desk = Desk::new();
        let other = Arc::clone(&desk);
        let thread = thread::spawn(move || {
            other.add_work();
            other.assist();
        });
        while !desk.turn.try_start_unasked() {
            thread::yield_now();
        }
        // SAFETY: the turn is ours.
        desk.done.with_mut(|done| unsafe { *done += 1 });
        desk.turn.hand_over();
        while desk.turn.try_start() {
            desk.run_turn();
        }
        thread.join().unwrap();
        desk.finished(1);
    });
}

#[test]
fn the_bell_is_heard_by_one_about_to_sleep() {
    check(4, "a dispatcher thread against a ring", || {
        let desk = Desk::new();
        let sleeper = Arc::clone(&desk);
        let dispatcher = thread::spawn(move || {
            loop {
                let bell = sleeper.turn.bell();
                if sleeper.turn.try_start() {
                    return sleeper.run_turn();
                }
                sleeper.turn.sleep(bell);
            }
        });
        desk.add_work();
        if desk.turn.ring() {
            desk.turn.wake();
        }
        dispatcher.join().unwrap();
        desk.finished(1);
    });
}
