//! The dispatcher thread: its bell, and its end.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::AdmissionOwned;
use tidegate_loom_tests::{check, check_at_length, enter, granted, handle, queue, threaded};

#[test]
fn a_release_wakes_the_dispatcher_and_it_ends_with_the_gate() {
    check(3, "one about to sleep hears both bells", || {
        let gate = threaded(1, 1, 1);
        let holder = enter(&gate, None);
        let ticket = queue(&gate, None);
        drop(holder);
        gate.settle();
        drop(granted(ticket));
    });
}

#[test]
fn one_who_waits_for_the_dispatcher_is_woken() {
    check(3, "a waker left as the dispatcher offers", || {
        let gate = threaded(1, 1, 1);
        let holder = enter(&gate, None);
        let ticket = queue(&gate, None);
        drop(holder);
        drop(loom::future::block_on(ticket).unwrap());
    });
}

#[test]
fn an_arrival_that_meets_a_release_gets_in_by_the_dispatcher() {
    check_at_length(
        3,
        "three threads: who comes, who goes, who hands on",
        || {
            let gate = handle(threaded(1, 1, 1));
            let holder = enter(&gate, None);
            let thread = thread::spawn(move || drop(holder));
            drop(loom::future::block_on(gate.admit(None)).unwrap());
            thread.join().unwrap();
        },
    );
}

#[test]
fn the_last_handle_may_be_a_tickets() {
    check(3, "the thread lives as long as somebody waits", || {
        let gate = threaded(1, 1, 1);
        let holder = enter(&gate, None);
        let ticket = match gate.request_owned(None).unwrap() {
            AdmissionOwned::Queued(ticket) => ticket,
            other => panic!("expected to queue, got {other:?}"),
        };
        drop(gate);
        drop(holder);
        drop(loom::future::block_on(ticket).unwrap());
    });
}
