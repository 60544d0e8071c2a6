//! For those who queue outside the gate: `room` and `enter_if_room`.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::*;
use tidegate::Lane;

#[test]
fn a_refusal_for_want_of_one_kind_is_no_room_of_the_other() {
    for ranks in [0, 2] {
        let gate = gate(2, 1, 0);
        if ranks > 0 {
            gate.report_engine(report(0..ranks, None)).unwrap();
        }
        let _waiting: Vec<_> = (0..ranks.max(1)).map(|_| enter(&gate, None)).collect();
        let room = gate.room();
        for rank in [None, Some(0), Some(1)] {
            assert!(gate.enter_if_room(rank).is_none());
        }
        assert!(!room.wait_timeout(Duration::ZERO), "nothing came free");
    }
}

#[test]
fn enter_if_room_counts_only_when_it_enters() {
    let gate = ranked(1, 1, 4, [2]);
    let permit = gate.enter_if_room(Some(2)).unwrap();
    assert_eq!(permit.source(), tidegate::Source::Direct);
    assert!(gate.enter_if_room(Some(2)).is_none());
    let seen = lane(&gate, Lane::Rank(2));
    assert_eq!((seen.received, seen.admitted(), seen.rejected()), (1, 1, 0));
    drop(permit);
    idle_check(&gate);
}

#[test]
fn room_that_frees_between_the_try_and_the_wait_is_not_missed() {
    let gate = gate(1, 1, 0);
    let holder = enter(&gate, None);
    let room = gate.room();
    assert!(gate.enter_if_room(None).is_none());
    drop(holder);
    room.wait();
    drop(gate.enter_if_room(None).unwrap());
    idle_check(&gate);
}

#[test]
fn room_does_not_fire_while_nothing_frees() {
    let gate = gate(1, 1, 0);
    let holder = enter(&gate, None);
    let mut room = gate.room();
    let wakes = Wakes::new();
    assert!(wakes.poll(&mut room).is_pending());
    assert!(gate.try_admit(None).is_err());
    assert!(wakes.poll(&mut room).is_pending());
    assert!(!gate.room().wait_timeout(Duration::ZERO));
    assert_eq!(wakes.count(), 0);
    drop(holder);
    eventually("it fires", || wakes.count() >= 1);
    assert!(wakes.poll(&mut room).is_ready());
    idle_check(&gate);
}

#[test]
fn whatever_frees_capacity_fires_room() {
    let gate = gate(2, 1, 1);
    let mut permit = enter(&gate, None);
    let fires = |what: &str, free: &mut dyn FnMut()| {
        let room = gate.room();
        free();
        assert!(room.wait_timeout(PATIENCE), "{what} fires");
    };
    fires("a first token", &mut || permit.first_token());
    let mut other = Some(enter(&gate, None));
    fires("an end", &mut || drop(other.take()));
    fires("growth", &mut || {
        gate.set_limits(settings(3, 3, 1)).unwrap();
    });
    fires("a report", &mut || {
        gate.report_engine(report([0, 1], None)).unwrap();
    });
    drop(permit);
    idle_check(&gate);
}

#[test]
fn every_listener_is_told_of_the_same_room() {
    let gate = gate(1, 1, 0);
    let holder = enter(&gate, None);
    thread::scope(|scope| {
        let listeners: Vec<_> = (0..4)
            .map(|_| {
                let room = gate.room();
                scope.spawn(|| room.wait())
            })
            .collect();
        drop(holder);
        for listener in listeners {
            listener.join().unwrap();
        }
    });
    idle_check(&gate);
}

#[test]
fn threads_that_wait_for_room_all_get_in_in_the_end() {
    let gate = gate(2, 1, 0);
    let entered = AtomicU64::new(0);
    let rounds = 500;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let mut permit = loop {
                        let room = gate.room();
                        if let Some(permit) = gate.enter_if_room(None) {
                            break permit;
                        }
                        room.wait();
                    };
                    entered.fetch_add(1, Ordering::Relaxed);
                    permit.first_token();
                }
            });
        }
    });
    assert_eq!(entered.into_inner(), 4 * rounds);
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!((seen.received, seen.admitted()), (4 * rounds, 4 * rounds));
    idle_check(&gate);
}

#[test]
fn the_gates_own_queue_goes_before_those_outside() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let ticket = queue(&gate, None);
    let room = gate.room();
    drop(holder);
    room.wait();
    gate.settle();
    assert!(gate.enter_if_room(None).is_none(), "it is offered already");
    drop(take(&gate, ticket));
    idle_check(&gate);
}
