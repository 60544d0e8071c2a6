//! Tickets and admissions, awaited, waited for and timed.

mod common;

use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use common::*;
use tidegate::{Admission, AdmissionOwned, Lane, Source, WaitError};

#[test]
fn a_plain_thread_parks_until_its_turn() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| gate.admit_blocking(None).unwrap().source());
        eventually("the thread queues", || held(&gate).2 == 1);
        drop(holder);
        assert_eq!(waiter.join().unwrap(), Source::Queue);
    });
    idle_check(&gate);
}

#[test]
fn a_ticket_can_be_waited_for_by_another_thread() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let ticket = queue(&gate, None);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| ticket.wait().unwrap().source());
        drop(holder);
        assert_eq!(waiter.join().unwrap(), Source::Queue);
    });
    idle_check(&gate);
}

#[test]
fn a_timed_wait_gives_the_ticket_back_with_its_place() {
    let gate = gate(1, 1, 2);
    let holder = enter(&gate, None);
    let first = queue(&gate, None);
    let mut second = queue(&gate, None);
    let Err(WaitError::Timeout(first)) = first.wait_timeout(Duration::from_millis(1)) else {
        panic!("nothing was free");
    };
    assert_eq!(held(&gate), (1, 1, 2), "it keeps its place");
    drop(holder);
    still_queued(&gate, &mut second);
    let permit = first.wait_timeout(PATIENCE).unwrap();
    drop(permit);
    let Ok(permit) = second.wait_timeout(Duration::MAX) else {
        panic!("a wait without an end gets its turn");
    };
    drop(permit);
    idle_check(&gate);
}

#[test]
fn a_timed_wait_of_no_time_takes_what_is_offered() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let ticket = queue(&gate, None);
    drop(holder);
    gate.settle();
    assert!(ticket.wait_timeout(Duration::ZERO).is_ok());
    idle_check(&gate);
}

#[test]
fn a_timed_wait_is_woken_before_its_time() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let ticket = queue(&gate, None);
    thread::scope(|scope| {
        // Far beyond the harness's patience: only a wake-up ends it.
        let hour = Duration::from_secs(3600);
        let waiter = scope.spawn(move || ticket.wait_timeout(hour).is_ok());
        drop(holder);
        assert!(waiter.join().unwrap());
    });
    idle_check(&gate);
}

#[test]
fn a_dropped_timed_out_ticket_is_a_cancellation() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    drop(queue(&gate, None).wait_timeout(Duration::ZERO));
    assert_eq!(held(&gate), (1, 1, 0));
    assert_eq!(lane(&gate, Lane::Unspecified).cancelled, 1);
    drop(holder);
    idle_check(&gate);
}

#[test]
fn admit_arrives_at_its_first_poll() {
    let gate = gate(1, 1, 1);
    let mut later = gate.admit(None);
    assert_eq!(lane(&gate, Lane::Unspecified).received, 0);
    let first = enter(&gate, None);
    assert!(poll(&mut later).is_pending());
    assert_eq!(held(&gate), (1, 1, 1));
    drop(gate.admit(None));
    assert_eq!(
        lane(&gate, Lane::Unspecified).received,
        2,
        "one that was never polled was never there"
    );
    drop(first);
    gate.settle();
    let Poll::Ready(Ok(permit)) = poll(&mut later) else {
        panic!("its turn came");
    };
    assert_eq!(permit.source(), Source::Queue);
    drop(permit);
    idle_check(&gate);
}

#[test]
fn admit_is_refused_at_its_first_poll() {
    let gate = gate(1, 1, 0);
    let holder = enter(&gate, None);
    assert!(matches!(poll(&mut gate.admit(None)), Poll::Ready(Err(_))));
    assert!(gate.admit_blocking(None).is_err());
    assert_eq!(lane(&gate, Lane::Unspecified).rejected(), 2);
    drop(holder);
    idle_check(&gate);
}

#[test]
fn a_dropped_admission_cancels() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let mut queued = gate.admit(None);
    assert!(poll(&mut queued).is_pending());
    drop(queued);
    assert_eq!(held(&gate), (1, 1, 0));
    let mut offered_to = gate.admit(None);
    assert!(poll(&mut offered_to).is_pending());
    drop(holder);
    assert_eq!(offered(&gate), 1);
    drop(offered_to);
    assert_eq!(lane(&gate, Lane::Unspecified).cancelled, 2);
    idle_check(&gate);
}

#[test]
fn the_waker_of_the_last_poll_is_the_one_that_is_woken() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    let (old, new) = (Wakes::new(), Wakes::new());
    assert!(old.poll(&mut ticket).is_pending());
    assert!(new.poll(&mut ticket).is_pending());
    assert_eq!(new.count(), 0);
    drop(holder);
    eventually("the task is woken", || new.count() >= 1);
    drop(take(&gate, ticket));
    idle_check(&gate);
}

#[test]
fn a_ticket_that_was_offered_before_its_first_poll_is_ready_at_once() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let mut admission = gate.request(None).unwrap();
    drop(holder);
    gate.settle();
    let Admission::Queued(ticket) = &mut admission else {
        panic!("it queued");
    };
    let wakes = Wakes::new();
    assert!(wakes.poll(ticket).is_ready());
    drop(admission);
    idle_check(&gate);
}

#[test]
fn owned_permits_and_tickets_outlive_every_handle() {
    let gate = ranked(1, 1, 2, [1]);
    let permit = gate.try_admit_owned(Some(1)).unwrap();
    let AdmissionOwned::Queued(ticket) = gate.request_owned(Some(1)).unwrap() else {
        panic!("the rank is full");
    };
    let admit = gate.admit_owned(Some(1));
    assert!(gate.enter_if_room_owned(Some(1)).is_none());
    drop(gate);
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(ticket.wait().unwrap()).unwrap());
    drop(permit);
    let second = receiver.recv_timeout(PATIENCE).unwrap();
    waiter.join().unwrap();
    assert_eq!(second.rank(), Some(1));
    drop(second);
    let mut admit = admit;
    let wakes = Wakes::new();
    assert!(wakes.poll(&mut admit).is_ready(), "the gate still stands");
}

#[test]
fn owned_calls_answer_as_the_borrowed_ones_do() {
    let gate = ranked(1, 1, 0, [1]);
    let permit = gate.enter_if_room_owned(Some(1)).unwrap();
    assert_eq!(
        gate.try_admit_owned(Some(1)).unwrap_err().scope(),
        gate.try_admit(Some(1)).unwrap_err().scope()
    );
    assert!(gate.request_owned(Some(1)).is_err());
    assert!(gate.admit_blocking_owned(Some(1)).is_err());
    drop(permit);
    gate.settle();
    let mut permit = gate.admit_blocking_owned(Some(1)).unwrap();
    permit.first_token();
    assert_eq!(held(&gate), (1, 0, 0));
    drop(permit);
    idle_check(&gate);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_await_their_turn_and_aborting_one_frees_its_place() {
    let gate = gate(1, 1, 3);
    let holder = gate.try_admit_owned(None).unwrap();
    let spawn = || {
        let gate = gate.clone();
        tokio::spawn(async move { gate.admit(None).await.map(|permit| permit.source()) })
    };
    let aborted = spawn();
    while held(&gate).2 < 1 {
        tokio::task::yield_now().await;
    }
    let others = [spawn(), spawn()];
    while held(&gate).2 < 3 {
        tokio::task::yield_now().await;
    }
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    assert_eq!(held(&gate).2, 2);
    drop(holder);
    for other in others {
        let source = tokio::time::timeout(PATIENCE, other)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(source.unwrap(), Source::Queue);
    }
    idle_check(&gate);
}
