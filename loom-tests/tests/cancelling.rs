//! Requests that leave while capacity comes.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate_loom_tests::{check, enter, gate, idle, queue, ranked};

#[test]
fn a_cancellation_that_meets_an_offer_passes_it_on() {
    check(3, "the next is admitted with no other event", || {
        let gate = gate(1, 1, 2);
        let holder = enter(&gate, None);
        let leaves = queue(&gate, None);
        let stays = queue(&gate, None);
        let thread = thread::spawn(move || leaves.cancel());
        drop(holder);
        // Waits for the canceller too, if the offer went there.
        drop(stays.wait().unwrap());
        thread.join().unwrap();
        assert_eq!(gate.snapshot().total(|lane| lane.cancelled), 1);
        idle(&gate);
    });
}

#[test]
fn two_cancellations_that_meet_an_offer_lose_nothing() {
    check(
        3,
        "three threads: the slot is free when all have left",
        || {
            let gate = gate(1, 1, 2);
            let holder = enter(&gate, None);
            let leave = [queue(&gate, None), queue(&gate, None)]
                .map(|ticket| thread::spawn(move || ticket.cancel()));
            drop(holder);
            for thread in leave {
                thread.join().unwrap();
            }
            assert_eq!(gate.snapshot().total(|lane| lane.cancelled), 2);
            idle(&gate);
        },
    );
}

#[test]
fn an_offer_passed_on_reaches_another_lane() {
    check(
        3,
        "what one rank gives back, an unranked one may use",
        || {
            let gate = ranked(1, 1, 1);
            let stays = enter(&gate, Some(0));
            let holder = enter(&gate, Some(1));
            let leaves = queue(&gate, Some(1));
            let other = queue(&gate, None);
            let thread = thread::spawn(move || leaves.cancel());
            drop(holder);
            drop(other.wait().unwrap());
            thread.join().unwrap();
            drop(stays);
            idle(&gate);
        },
    );
}

#[test]
fn a_place_is_free_once_its_request_has_left() {
    check(
        3,
        "one who leaves and one who comes, at a queue of one",
        || {
            let gate = gate(1, 1, 1);
            let holder = enter(&gate, None);
            let leaves = queue(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || {
                leaves.cancel();
                // Its own next request, or the other's, has the place.
                other.request_owned(None)
            });
            let mine = gate.request_owned(None);
            let theirs = thread.join().unwrap();
            assert!(mine.is_ok() || theirs.is_ok());
            let queued = gate.snapshot().worker.queued;
            assert_eq!(queued, 1, "exactly one holds it");
            drop((mine, theirs, holder));
            idle(&gate);
        },
    );
}

#[test]
fn a_dropped_task_that_meets_its_offer_gives_it_back() {
    check(3, "dropping a future is leaving, offered or not", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || drop(holder));
        let mut admission = Box::pin(gate.admit_owned(None));
        let polled = loom::future::block_on(std::future::poll_fn(|context| {
            std::task::Poll::Ready(admission.as_mut().poll(context))
        }));
        drop(polled);
        drop(admission);
        thread.join().unwrap();
        idle(&gate);
    });
}
