//! The dispatcher thread: its bell, and its end.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::model::dispatcher;
use tidegate_loom_tests::{check, check_at_length, enter, granted, handle, look, queue, threaded};

#[test]
fn a_release_wakes_the_dispatcher_and_it_ends_with_the_gate() {
    check(3, "one about to sleep hears both bells", || {
        let gate = threaded(1, 1, 1);
        let holder = gate.try_admit(None).unwrap();
        let ticket = queue(&gate, None);
        let dispatcher = thread::spawn(dispatcher(&gate));
        drop(holder);
        gate.settle();
        drop(granted(ticket));
        drop(gate);
        dispatcher.join().unwrap();
    });
}

#[test]
fn one_who_waits_for_the_dispatcher_is_woken() {
    check(3, "a waker left as the dispatcher offers", || {
        let gate = threaded(1, 1, 1);
        let holder = gate.try_admit(None).unwrap();
        let ticket = queue(&gate, None);
        drop(holder);
        let dispatcher = thread::spawn(dispatcher(&gate));
        drop(gate);
        drop(ticket.wait().unwrap());
        dispatcher.join().unwrap();
    });
}

#[test]
fn the_last_handle_may_be_a_cancelled_tickets() {
    check_at_length(
        3,
        "nobody is left to be served, and the thread ends",
        || {
            let gate = threaded(1, 1, 1);
            let holder = enter(&gate, None);
            let mut ticket = queue(&gate, None);
            let dispatcher = thread::spawn(dispatcher(&gate));
            drop(gate);
            drop(holder);
            drop((look(&mut ticket), ticket));
            dispatcher.join().unwrap();
        },
    );
}

#[test]
fn an_arrival_that_meets_a_release_gets_in_by_the_dispatcher() {
    check_at_length(
        3,
        "three threads: who comes, who goes, who hands on",
        || {
            let gate = handle(threaded(1, 1, 1));
            let holder = enter(&gate, None);
            let dispatcher = thread::spawn(dispatcher(&gate));
            let thread = thread::spawn(move || drop(holder));
            drop(gate.admit_blocking(None).unwrap());
            thread.join().unwrap();
            drop(gate);
            dispatcher.join().unwrap();
        },
    );
}
