//! Those who queue outside the gate.
#![cfg(tidegate_loom)]

use std::pin::pin;
use std::task::{Context, Waker};

use loom::thread;
use tidegate::{Gate, Room};
use tidegate_loom_tests::{
    check, check_at_length, enter, gate, handle, idle, manual, queue, with_ranks,
};

fn has_come(room: Room<'_>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(room).poll(&mut context).is_ready()
}

/// As one does who queues outside: makes the event, tries, and waits for it.
fn enter_from_outside(gate: &Gate) {
    loop {
        let room = gate.room();
        if gate.enter_if_room(None).is_some() {
            return;
        }
        loom::future::block_on(room);
    }
}

#[test]
fn room_that_frees_during_the_try_is_never_missed() {
    check(3, "make the event, try, wait: no gap in between", || {
        let gate = handle(gate(1, 1, 0));
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || drop(holder));
        enter_from_outside(&gate);
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn room_that_another_took_and_freed_is_not_missed() {
    check(
        3,
        "the flag goes with the first event, and is set again",
        || {
            let gate = handle(gate(1, 1, 0));
            let holder = enter(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || {
                drop(holder);
                drop(other.try_admit_owned(None));
            });
            enter_from_outside(&gate);
            thread.join().unwrap();
            idle(&gate);
        },
    );
}

#[test]
fn room_that_was_meant_for_one_who_left_is_told_of() {
    check(
        3,
        "leaving frees nothing; the turn that finds it gone tells",
        || {
            let gate = handle(manual(1, 1, 1));
            let holder = enter(&gate, None);
            let ticket = queue(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || {
                drop(holder);
                ticket.cancel();
                other.settle();
            });
            enter_from_outside(&gate);
            thread.join().unwrap();
            idle(&gate);
        },
    );
}

#[test]
fn a_turn_that_opens_the_gate_tells_the_listener() {
    check(
        3,
        "the queue empties: nobody waits outside for what it left",
        || {
            let gate = handle(gate(1, 1, 1));
            let mut holder = enter(&gate, None);
            holder.first_token();
            // Leaves the gate shut behind it, with nobody in the queue.
            queue(&gate, None).cancel();
            let thread = thread::spawn(move || drop(holder));
            enter_from_outside(&gate);
            thread.join().unwrap();
            idle(&gate);
        },
    );
}

#[test]
fn a_turn_that_offers_in_vain_tells_the_listener() {
    check_at_length(
        3,
        "what the turn gives back, somebody outside may use",
        || {
            let gate = handle(with_ranks(manual(1, 1, 1)));
            let _busy = enter(&gate, Some(0));
            let holder = enter(&gate, Some(1));
            let leaves = queue(&gate, Some(1));
            drop(holder);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            leaves.cancel();
            let room = gate.room();
            let entered = gate.enter_if_room(None).is_some();
            turn.join().unwrap();
            gate.settle();
            // One place is free now: who did not get it was told.
            assert!(entered || has_come(room), "it would listen for ever");
        },
    );
}

#[test]
fn two_listeners_both_get_in_in_the_end() {
    check_at_length(
        3,
        "three threads: who loses the room hears of the next",
        || {
            let gate = handle(gate(1, 1, 0));
            let holder = enter(&gate, None);
            let listeners = [gate.clone(), gate.clone()].map(|gate| {
                thread::spawn(move || {
                    loop {
                        let room = gate.room();
                        if gate.enter_if_room(None).is_some() {
                            break;
                        }
                        room.wait();
                    }
                })
            });
            drop(holder);
            for listener in listeners {
                listener.join().unwrap();
            }
            idle(&gate);
        },
    );
}

#[test]
fn a_stop_releases_a_listener() {
    check(3, "nobody listens to a stopped gate for ever", || {
        let gate = handle(gate(1, 1, 0));
        let _holder = enter(&gate, None);
        let other = gate.clone();
        let listener = thread::spawn(move || other.room().wait());
        gate.stop();
        listener.join().unwrap();
    });
}
