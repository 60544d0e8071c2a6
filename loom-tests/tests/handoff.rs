//! Capacity that frees while somebody comes or waits.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::model::{enter_entitled, leave};
use tidegate::{AdmissionOwned, Source};
use tidegate_loom_tests::{
    check, check_at_length, enter, gate, granted, handle, idle, is_in, manual, queue, ranked,
    with_ranks,
};

#[test]
fn an_arrival_that_meets_a_release_gets_in() {
    check(3, "queue or enter: no wake-up is lost", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || drop(holder));
        drop(gate.admit_blocking(None).unwrap());
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn a_task_that_meets_a_release_gets_in() {
    check(3, "a waker registered as capacity frees is woken", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || drop(holder));
        drop(loom::future::block_on(gate.admit(None)).unwrap());
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn an_arrival_that_meets_a_first_token_gets_in() {
    check(3, "waiting capacity is handed on as running is", || {
        let gate = gate(2, 1, 1);
        let mut holder = enter(&gate, None);
        let thread = thread::spawn(move || {
            holder.first_token();
            holder
        });
        let mine = gate.admit_blocking_owned(None).unwrap();
        let holder = thread.join().unwrap();
        let worker = gate.snapshot().worker;
        assert_eq!((worker.running, worker.waiting), (2, 1));
        drop((mine, holder));
        idle(&gate);
    });
}

#[test]
fn capacity_that_frees_is_not_taken_by_a_newcomer() {
    check(
        3,
        "what frees belongs to who waited, at every instant",
        || {
            let gate = handle(gate(1, 1, 1));
            let holder = enter(&gate, None);
            let ticket = queue(&gate, None);
            let releaser = thread::spawn(move || drop(holder));
            assert!(gate.try_admit(None).is_err(), "the queue was passed");
            releaser.join().unwrap();
            assert_eq!(granted(ticket).source(), Source::Queue);
            idle(&gate);
        },
    );
}

#[test]
fn two_releases_let_two_lanes_in() {
    check(3, "two turns that meet leave nobody behind", || {
        let gate = ranked(1, 1, 1);
        let holders = (enter(&gate, Some(0)), enter(&gate, Some(1)));
        let tickets = (queue(&gate, Some(0)), queue(&gate, None));
        let thread = thread::spawn(move || drop(holders.0));
        drop(holders.1);
        thread.join().unwrap();
        drop((tickets.0.wait().unwrap(), tickets.1.wait().unwrap()));
        idle(&gate);
    });
}

#[test]
fn one_who_waits_and_leaves_hands_on() {
    check(3, "a chain of hand-overs has no gap", || {
        let gate = handle(gate(1, 1, 2));
        let holder = enter(&gate, None);
        let first = queue(&gate, None);
        let second = queue(&gate, None);
        let waiter = thread::spawn(move || drop(loom::future::block_on(first).unwrap()));
        drop(holder);
        waiter.join().unwrap();
        drop(granted(second));
        idle(&gate);
    });
}

#[test]
fn two_waiters_each_get_their_turn() {
    check_at_length(3, "three threads: the chain again, all parked", || {
        let gate = handle(gate(1, 1, 2));
        let holder = enter(&gate, None);
        let waiters = [queue(&gate, None), queue(&gate, None)]
            .map(|ticket| thread::spawn(move || drop(ticket.wait().unwrap())));
        drop(holder);
        for waiter in waiters {
            waiter.join().unwrap();
        }
        idle(&gate);
    });
}

#[test]
fn a_ranked_arrival_that_meets_a_release_gets_in() {
    check(
        3,
        "its rank's room and the worker's, queued or at once",
        || {
            let gate = handle(ranked(1, 1, 1));
            let holder = enter(&gate, Some(0));
            let other = gate.clone();
            let arrival = thread::spawn(move || other.request_owned(Some(0)).unwrap());
            drop(holder);
            let mut arrival = arrival.join().unwrap();
            assert!(is_in(&mut arrival));
            drop(arrival);
            idle(&gate);
        },
    );
}

#[test]
fn a_ranked_arrival_that_lacks_the_workers_room_meets_its_release() {
    check(
        3,
        "what frees at one rank lets another's request in",
        || {
            let gate = handle(ranked(1, 1, 1));
            let unranked = gate.try_admit_owned(None).unwrap();
            let holder = gate.try_admit_owned(None).unwrap();
            let other = gate.clone();
            let arrival = thread::spawn(move || other.request_owned(Some(0)).unwrap());
            drop(holder);
            let mut arrival = arrival.join().unwrap();
            assert!(is_in(&mut arrival));
            drop((arrival, unranked));
            idle(&gate);
        },
    );
}

#[test]
fn the_last_permit_may_go_while_another_queues_without_a_handle() {
    check(3, "permits and tickets alone keep the gate going", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || match gate.request_owned(None).unwrap() {
            AdmissionOwned::Admitted(permit) => permit,
            AdmissionOwned::Queued(ticket) => {
                drop(gate);
                ticket.wait().unwrap()
            }
        });
        drop(holder);
        drop(thread.join().unwrap());
    });
}

#[test]
fn a_release_that_meets_the_turns_flags_is_not_overlooked() {
    check(
        4,
        "room that comes just before the turn shuts the gate",
        || {
            let gate = handle(with_ranks(manual(1, 1, 1)));
            let passing = enter(&gate, Some(1));
            let holder = enter(&gate, Some(0));
            // Lacks its rank's room alone, and so shuts no other rank out; then the
            // worker's, which is here for somebody else.
            let ticket = queue(&gate, Some(0));
            drop(holder);
            let busy = enter_entitled(&gate);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            drop(passing);
            turn.join().unwrap();
            gate.settle();
            drop(granted(ticket));
            leave(&gate, busy);
        },
    );
}
