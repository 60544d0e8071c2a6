//! Requests that leave before they are admitted.

mod common;

use common::*;
use tidegate::{Lane, Source};

#[test]
fn waiters_that_gave_up_swallow_no_permit() {
    let gate = gate(8, 8, 8);
    for round in 0..1000 {
        let holders: Vec<_> = (0..8).map(|_| enter(&gate, None)).collect();
        let quitters: Vec<_> = (0..8).map(|_| queue(&gate, None)).collect();
        drop(quitters);
        drop(holders);
        gate.settle();
        let newcomers: Vec<_> = (0..8).map(|_| enter(&gate, None)).collect();
        assert!(
            newcomers.iter().all(|p| p.source() == Source::Direct),
            "round {round}"
        );
    }
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!(seen.cancelled, 8000);
    idle_check(&gate);
}

#[test]
fn waiters_that_give_up_after_the_holders_finished_swallow_no_permit() {
    let gate = gate(8, 8, 8);
    for _ in 0..1000 {
        let holders: Vec<_> = (0..8).map(|_| enter(&gate, None)).collect();
        let quitters: Vec<_> = (0..8).map(|_| queue(&gate, None)).collect();
        drop(holders);
        drop(quitters);
        gate.settle();
        let newcomers: Vec<_> = (0..8).map(|_| enter(&gate, None)).collect();
        drop(newcomers);
    }
    idle_check(&gate);
}

#[test]
fn a_client_gone_on_arrival_counts_as_received_and_cancelled() {
    let gate = ranked(1, 1, 1, [3]);
    gate.cancelled_on_arrival(Some(3));
    gate.cancelled_on_arrival(Some(99));
    let seen = lane(&gate, Lane::Rank(3));
    assert_eq!((seen.received, seen.cancelled, seen.admitted()), (1, 1, 0));
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!((seen.received, seen.cancelled, seen.admitted()), (1, 1, 0));
    idle_check(&gate);
}

#[test]
fn a_waiter_dropped_before_its_turn_leaves_it_to_the_next() {
    let gate = gate(1, 1, 2);
    let holder = enter(&gate, None);
    let dropped = queue(&gate, None);
    let next = queue(&gate, None);
    drop(dropped);
    drop(holder);
    drop(take(&gate, next));
    idle_check(&gate);
}

#[test]
fn a_waiter_dropped_with_its_offer_leaves_it_to_the_next() {
    let gate = gate(1, 1, 2);
    let holder = enter(&gate, None);
    let dropped = queue(&gate, None);
    let next = queue(&gate, None);
    drop(holder);
    gate.settle();
    drop(dropped);
    drop(take(&gate, next));
    idle_check(&gate);
}

#[test]
fn a_whole_line_of_dropped_offers_ends_at_the_one_who_stays() {
    let gate = gate(2, 2, 50);
    let holders = [enter(&gate, None), enter(&gate, None)];
    let mut line: Vec<_> = (0..50).map(|_| queue(&gate, None)).collect();
    let last = line.pop().unwrap();
    drop(holders);
    for ticket in line {
        gate.settle();
        ticket.cancel();
    }
    drop(take(&gate, last));
    idle_check(&gate);
}

#[test]
fn places_of_those_who_left_are_free_at_once() {
    let gate_2 = gate(1, 1, 2);
    let holder = enter(&gate_2, None);
    let gone = [queue(&gate_2, None), queue(&gate_2, None)];
    drop(gone);
    let _stay = [queue(&gate_2, None), queue(&gate_2, None)];
    assert_eq!(held(&gate_2), (1, 1, 2));
    drop(holder);

    let gate_1 = gate(1, 1, 1);
    let holder = enter(&gate_1, None);
    queue(&gate_1, None).cancel();
    // No settling: the place is free at the moment of leaving.
    let stays = queue(&gate_1, None);
    drop(holder);
    drop(take(&gate_1, stays));
    idle_check(&gate_1);
}

#[test]
fn the_middle_of_the_line_may_leave_and_the_order_stays() {
    let gate = gate(1, 1, 4);
    let holder = enter(&gate, None);
    let first = queue(&gate, None);
    let middle = queue(&gate, None);
    let mut last = queue(&gate, None);
    middle.cancel();
    assert_eq!(held(&gate), (1, 1, 2));
    drop(holder);
    let first = take(&gate, first);
    still_queued(&gate, &mut last);
    drop(first);
    drop(take(&gate, last));
    idle_check(&gate);
}

#[test]
fn a_crowd_that_leaves_leaves_nothing_behind() {
    let gate = gate(1, 1, 10_000);
    let holder = enter(&gate, None);
    let mut crowd: Vec<_> = (0..10_000).map(|_| queue(&gate, None)).collect();
    assert!(gate.request(None).is_err());
    // From both ends, so that neither is an easy case.
    while crowd.len() >= 2 {
        drop(crowd.pop());
        drop(crowd.swap_remove(0));
    }
    assert_eq!(held(&gate), (1, 1, 0));
    let again: Vec<_> = (0..10_000).map(|_| queue(&gate, None)).collect();
    drop(again);
    drop(holder);
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!(
        (seen.cancelled, seen.rejected(), seen.admitted()),
        (20_000, 1, 1)
    );
    idle_check(&gate);
}

#[test]
fn the_next_request_of_a_client_that_left_is_judged_on_its_own() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    queue(&gate, None).cancel();
    drop(holder);
    gate.settle();
    let next = enter(&gate, None);
    assert_eq!(next.source(), Source::Direct);
    drop(next);
    idle_check(&gate);
}

#[test]
fn leaving_lets_nobody_of_a_blocked_lane_in() {
    let gate = ranked(1, 1, 4, [0, 1]);
    let running = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let head = queue(&gate, Some(0));
    let mut behind = queue(&gate, Some(0));
    head.cancel();
    still_queued(&gate, &mut behind);
    drop((running, behind));
    idle_check(&gate);
}

#[test]
fn cancellation_is_never_a_rejection() {
    let gate = ranked(1, 1, 1, [5]);
    let holder = enter(&gate, Some(5));
    queue(&gate, Some(5)).cancel();
    let offered = queue(&gate, Some(5));
    drop(holder);
    gate.settle();
    offered.cancel();
    let seen = lane(&gate, Lane::Rank(5));
    assert_eq!(
        (seen.cancelled, seen.rejected(), seen.admitted()),
        (2, 0, 1)
    );
    idle_check(&gate);
}
