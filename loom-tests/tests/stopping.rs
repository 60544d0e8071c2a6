//! A gate that is stopped while somebody comes or waits.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate_loom_tests::{check, check_at_length, enter, gate, handle, look, queue};

#[test]
fn one_who_waits_is_told_of_the_stop() {
    check(3, "waiting ends, whenever the stop comes", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let ticket = queue(&gate, None);
        let waiter = thread::spawn(move || ticket.wait().is_err());
        gate.stop();
        assert!(waiter.join().unwrap());
        drop(holder);
        let worker = gate.snapshot().worker;
        assert_eq!((worker.running, worker.queued), (0, 0));
    });
}

#[test]
fn one_who_comes_is_told_of_the_stop_or_gets_in() {
    check(3, "no arrival hangs in a stopped gate's queue", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let other = gate.clone();
        let arrival = thread::spawn(move || other.admit_blocking(None).is_err());
        gate.stop();
        assert!(arrival.join().unwrap(), "nothing was ever free");
        drop(holder);
        assert_eq!(gate.snapshot().worker.queued, 0);
    });
}

#[test]
fn a_stop_that_meets_a_release_ends_the_waiting_either_way() {
    check_at_length(
        3,
        "three threads: permit or error, and nothing is lost",
        || {
            let gate = gate(1, 1, 1);
            let holder = enter(&gate, None);
            let ticket = queue(&gate, None);
            let releaser = thread::spawn(move || drop(holder));
            let waiter = thread::spawn(move || drop(ticket.wait()));
            gate.stop();
            releaser.join().unwrap();
            waiter.join().unwrap();
            let snapshot = gate.snapshot();
            assert_eq!((snapshot.worker.running, snapshot.worker.queued), (0, 0));
            assert!(snapshot.lanes.iter().all(|lane| lane.conserves()));
        },
    );
}

#[test]
fn a_stop_that_meets_a_release_answers_the_ticket() {
    check(3, "permit or error, and the capacity comes back", || {
        let gate = handle(gate(1, 1, 1));
        let holder = enter(&gate, None);
        let mut ticket = queue(&gate, None);
        let releaser = thread::spawn(move || drop(holder));
        gate.stop();
        releaser.join().unwrap();
        assert!(look(&mut ticket).is_some());
        drop(ticket);
        let worker = gate.snapshot().worker;
        assert_eq!((worker.running, worker.queued), (0, 0));
    });
}
