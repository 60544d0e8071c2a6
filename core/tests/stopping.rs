//! A stopped gate: errors, never a hang.

mod common;

use std::task::Poll;
use std::thread;
use std::time::Duration;

use common::*;
use tidegate::{Gate, Rejection, Stopped, WaitError};

#[test]
fn newcomers_get_an_error_of_its_own() {
    let gate = gate(1, 1, 1);
    assert!(!gate.is_stopped());
    gate.stop();
    assert!(gate.is_stopped());
    let refusal = gate.try_admit(None).unwrap_err();
    assert_eq!(refusal, Rejection::Stopped);
    assert_eq!((refusal.scope(), refusal.overload()), (None, None));
    assert!(!refusal.to_string().starts_with("Server overloaded:"));
    assert_eq!(gate.request(None).unwrap_err(), Rejection::Stopped);
    assert_eq!(gate.admit_blocking(None).unwrap_err(), Rejection::Stopped);
    assert!(matches!(
        poll(&mut gate.admit(None)),
        Poll::Ready(Err(Rejection::Stopped))
    ));
    assert!(gate.enter_if_room(None).is_none());
    assert_eq!(held(&gate), (0, 0, 0));
}

#[test]
fn those_who_wait_get_an_error_however_they_wait() {
    let gate = gate(1, 1, 8);
    let holder = enter(&gate, None);
    thread::scope(|scope| {
        let blocking = scope.spawn(|| gate.admit_blocking(None).unwrap_err());
        let ticket = queue(&gate, None);
        let waiting = scope.spawn(|| ticket.wait().unwrap_err());
        let ticket = queue(&gate, None);
        let hour = Duration::from_secs(3600);
        let timed =
            scope.spawn(move || matches!(ticket.wait_timeout(hour), Err(WaitError::Stopped)));
        let mut task = gate.admit(None);
        let wakes = Wakes::new();
        assert!(wakes.poll(&mut task).is_pending());
        eventually("all four queue", || held(&gate).2 == 4);
        gate.stop();
        assert_eq!(blocking.join().unwrap(), Rejection::Stopped);
        assert_eq!(waiting.join().unwrap(), Stopped);
        assert!(timed.join().unwrap());
        eventually("the task is woken", || wakes.count() >= 1);
        assert!(matches!(
            poll(&mut task),
            Poll::Ready(Err(Rejection::Stopped))
        ));
    });
    assert_eq!(held(&gate), (1, 1, 0), "the permit that is out stays good");
    drop(holder);
    assert_eq!(held(&gate), (0, 0, 0));
    assert!(gate.snapshot().lanes.iter().all(|lane| lane.conserves()));
}

#[test]
fn capacity_that_frees_after_the_stop_lets_nobody_in() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let ticket = queue(&gate, None);
    gate.stop();
    drop(holder);
    gate.settle();
    assert_eq!(ticket.wait().unwrap_err(), Stopped);
    assert_eq!(held(&gate), (0, 0, 0));
}

#[test]
fn stopping_twice_is_stopping_once() {
    let gate = gate(1, 1, 1);
    gate.stop();
    gate.stop();
    assert!(gate.is_stopped());
}

#[test]
fn every_handle_sees_the_stop() {
    let gate = gate(1, 1, 1);
    let other: Gate = gate.clone();
    thread::spawn(move || other.stop()).join().unwrap();
    assert!(gate.try_admit(None).is_err());
}

#[test]
fn listeners_for_room_are_released() {
    let gate = gate(1, 1, 0);
    let holder = enter(&gate, None);
    thread::scope(|scope| {
        let room = gate.room();
        let listener = scope.spawn(|| room.wait());
        gate.stop();
        listener.join().unwrap();
    });
    gate.room().wait();
    drop(holder);
}

#[test]
fn dropping_the_last_handle_leaves_permits_and_tickets_sound() {
    let gate = gate(1, 1, 1);
    let mut permit = gate.try_admit_owned(None).unwrap();
    let tidegate::AdmissionOwned::Queued(ticket) = gate.request_owned(None).unwrap() else {
        panic!("it queues");
    };
    drop(gate);
    permit.first_token();
    drop(ticket);
    drop(permit);
}
