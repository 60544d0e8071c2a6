//! Those who queue outside the gate.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate_loom_tests::{check, enter, gate, idle};

#[test]
fn room_that_frees_during_the_try_is_never_missed() {
    check(3, "make the event, try, wait: no gap in between", || {
        let gate = gate(1, 1, 0);
        let holder = enter(&gate, None);
        let thread = thread::spawn(move || drop(holder));
        let room = gate.room();
        if gate.enter_if_room(None).is_none() {
            room.wait();
            drop(gate.enter_if_room(None).expect("the room is here"));
        }
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn two_listeners_both_get_in_in_the_end() {
    check(
        3,
        "three threads: who loses the room hears of the next",
        || {
            let gate = gate(1, 1, 0);
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
        let gate = gate(1, 1, 0);
        let _holder = enter(&gate, None);
        let other = gate.clone();
        let listener = thread::spawn(move || other.room().wait());
        gate.stop();
        listener.join().unwrap();
    });
}
