//! Requests that leave while capacity comes.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate_loom_tests::{
    check, check_at_length, enter, gate, granted, handle, idle, is_in, manual, queue, with_ranks,
};

#[test]
fn a_head_that_leaves_as_it_is_offered_passes_it_on() {
    check(3, "the next is admitted with no other event", || {
        let gate = handle(manual(1, 1, 2));
        let holder = enter(&gate, None);
        let leaves = queue(&gate, None);
        let stays = queue(&gate, None);
        drop(holder);
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        leaves.cancel();
        turn.join().unwrap();
        gate.settle();
        drop(granted(stays));
        assert_eq!(gate.snapshot().total(|lane| lane.cancelled), 1);
        idle(&gate);
    });
}

#[test]
fn one_who_leaves_the_middle_as_it_is_offered_passes_it_on() {
    check(
        3,
        "the one before keeps its own, the next gets this one",
        || {
            let gate = handle(manual(2, 2, 3));
            let holders = (enter(&gate, None), enter(&gate, None));
            let first = queue(&gate, None);
            let leaves = queue(&gate, None);
            let last = queue(&gate, None);
            drop(holders);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            leaves.cancel();
            turn.join().unwrap();
            gate.settle();
            drop((granted(first), granted(last)));
            idle(&gate);
        },
    );
}

#[test]
fn a_cancellation_that_meets_a_release_passes_it_on() {
    check_at_length(3, "the same, where the releaser runs the turn", || {
        let gate = handle(gate(1, 1, 2));
        let holder = enter(&gate, None);
        let leaves = queue(&gate, None);
        let stays = queue(&gate, None);
        let thread = thread::spawn(move || leaves.cancel());
        drop(holder);
        thread.join().unwrap();
        drop(granted(stays));
        idle(&gate);
    });
}

#[test]
fn one_who_comes_into_a_slot_that_was_left_under_the_turn_gets_in() {
    check(3, "an offer to the one before is none to the next", || {
        let gate = handle(manual(1, 1, 2));
        let holder = enter(&gate, None);
        let leaves = queue(&gate, None);
        drop(holder);
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        leaves.cancel();
        let mut comes = gate.request_owned(None).expect("there is queue room");
        turn.join().unwrap();
        gate.settle();
        assert!(is_in(&mut comes));
        drop(comes);
        idle(&gate);
    });
}

#[test]
fn two_cancellations_that_meet_an_offer_lose_nothing() {
    check_at_length(
        3,
        "three threads: the slot is free when all have left",
        || {
            let gate = handle(manual(1, 1, 2));
            let holder = enter(&gate, None);
            let leave = (queue(&gate, None), queue(&gate, None));
            drop(holder);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            let thread = thread::spawn(move || leave.1.cancel());
            leave.0.cancel();
            turn.join().unwrap();
            thread.join().unwrap();
            gate.settle();
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
            let gate = handle(with_ranks(manual(1, 1, 1)));
            let _stays = enter(&gate, Some(0));
            let holder = enter(&gate, Some(1));
            let leaves = queue(&gate, Some(1));
            let other_lane = queue(&gate, None);
            drop(holder);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            leaves.cancel();
            turn.join().unwrap();
            gate.settle();
            drop(granted(other_lane));
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
