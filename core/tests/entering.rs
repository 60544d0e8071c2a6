//! Who enters at once, who queues, who is refused: bounds are exact.

mod common;

use common::*;
use tidegate::{Lane, Limit, Scope, Source};

#[test]
fn a_ranked_request_needs_room_at_its_rank_and_in_the_worker() {
    let gate = ranked(2, 2, 0, [0, 1]);
    let rank_0 = [enter(&gate, Some(0)), enter(&gate, Some(0))];
    assert!(gate.try_admit(Some(0)).is_err(), "rank 0 is full");
    let unranked = [enter(&gate, None), enter(&gate, None)];
    let refusal = gate.try_admit(Some(1)).unwrap_err();
    let overload = refusal.overload().unwrap();
    assert!(
        overload.of_worker,
        "rank 1 is empty, the worker full: {overload:?}"
    );
    drop((rank_0, unranked));
    idle_check(&gate);
}

#[test]
fn both_capacities_are_taken_together_or_not_at_all() {
    let gate = gate(2, 1, 0);
    let first = enter(&gate, None);
    assert!(gate.try_admit(None).is_err(), "no waiting capacity is left");
    assert_eq!(held(&gate), (1, 1, 0), "the refused one holds nothing");
    drop(first);
    idle_check(&gate);
}

#[test]
fn an_unranked_request_needs_only_the_workers_room() {
    let gate = ranked(1, 1, 0, [4, 9]);
    let permits = [enter(&gate, None), enter(&gate, None)];
    assert_eq!(held(&gate), (2, 2, 0));
    assert!(gate.try_admit(None).is_err());
    drop(permits);
    idle_check(&gate);
}

#[test]
fn a_rank_that_the_engine_did_not_report_is_unranked() {
    let gate = ranked(1, 1, 0, [0, u32::MAX]);
    let stray = enter(&gate, Some(7));
    assert_eq!((stray.rank(), stray.lane()), (None, Lane::Unspecified));
    let named = enter(&gate, Some(u32::MAX));
    assert_eq!(named.rank(), Some(u32::MAX));
    assert_eq!(lane(&gate, Lane::Unspecified).running, 1);
    drop((stray, named));
    idle_check(&gate);
}

#[test]
fn queues_of_0_1_and_2_hold_exactly_that_many() {
    for q in 0..=2 {
        let gate = gate(1, 1, q);
        let running = enter(&gate, None);
        let tickets: Vec<_> = (0..q).map(|_| queue(&gate, None)).collect();
        assert_eq!(held(&gate), (1, 1, u64::from(q)));
        let refusal = gate.request(None).unwrap_err();
        let expected = match q {
            0 => Limit::EngineRequest,
            _ => Limit::RequestQueue,
        };
        assert_eq!(refusal.overload().unwrap().limit, expected, "Q = {q}");
        assert_eq!(held(&gate), (1, 1, u64::from(q)), "the refused one left");
        drop(tickets);
        drop(running);
        idle_check(&gate);
    }
}

#[test]
fn every_queue_bound_is_exact_the_combined_one_too() {
    let gate = ranked(1, 1, 2, [0, 1]);
    let running = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let rank_0 = [queue(&gate, Some(0)), queue(&gate, Some(0))];
    let refusal = gate.request(Some(0)).unwrap_err();
    assert_eq!(refusal.scope(), Some(Scope::Rank(0)));
    assert_eq!(refusal.overload().unwrap().value, 2);

    let shared = [queue(&gate, None), queue(&gate, None)];
    let refusal = gate.request(Some(1)).unwrap_err();
    assert_eq!(
        refusal.scope(),
        Some(Scope::Worker),
        "rank 1's own queue is empty, but the worker's is full"
    );
    assert_eq!(refusal.overload().unwrap().value, 4);
    assert!(gate.request(None).is_err());
    assert_eq!(held(&gate), (2, 2, 4));
    drop((rank_0, shared));
    drop(running);
    idle_check(&gate);
}

#[test]
fn four_ranks_of_two_hold_eight_and_at_most_two_per_named_rank() {
    let gate = ranked(2, 2, 0, 0..4);
    let mut permits = Vec::new();
    for rank in 0..4 {
        permits.extend([enter(&gate, Some(rank)), enter(&gate, Some(rank))]);
        assert!(gate.try_admit(Some(rank)).is_err());
        assert_eq!(held_by(&gate, rank).0, 2);
    }
    assert!(gate.try_admit(None).is_err());
    assert_eq!(held(&gate).0, 8);
    permits.clear();
    permits.extend((0..8).map(|_| enter(&gate, None)));
    assert!(gate.try_admit(None).is_err());
    assert!(gate.try_admit(Some(3)).is_err());
    permits.clear();
    idle_check(&gate);
}

#[test]
fn a_newcomer_does_not_pass_the_queue_of_its_lane() {
    let gate = ranked(1, 1, 4, [0, 1]);
    let running = enter(&gate, Some(0));
    let mut older = queue(&gate, Some(0));
    drop(running);
    // The capacity is the older one's, taken up or not.
    let younger = queue(&gate, Some(0));
    assert!(gate.try_admit(Some(0)).is_err());
    assert!(gate.enter_if_room(Some(0)).is_none());
    gate.settle();
    let std::task::Poll::Ready(Ok(permit)) = poll(&mut older) else {
        panic!("the older one's turn has come");
    };
    assert_eq!(permit.source(), Source::Queue);
    drop((permit, older, younger));
    idle_check(&gate);
}

#[test]
fn a_queue_at_one_rank_does_not_close_another() {
    let gate = ranked(1, 1, 4, [0, 1]);
    let busy = enter(&gate, Some(0));
    let mut blocked = queue(&gate, Some(0));
    let other = enter(&gate, Some(1));
    still_queued(&gate, &mut blocked);
    drop((other, blocked, busy));
    idle_check(&gate);
}

#[test]
fn a_request_that_cannot_queue_never_counts_as_queued() {
    let gate = gate(1, 1, 0);
    let running = enter(&gate, None);
    assert!(gate.request(None).is_err());
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!((seen.received, seen.rejected(), seen.queued), (2, 1, 0));
    drop(running);
    idle_check(&gate);
}

#[test]
fn an_admitted_request_is_never_queued_again_nor_refused() {
    let gate = gate(2, 1, 1);
    let mut admitted = enter(&gate, None);
    let ticket = queue(&gate, None);
    assert!(gate.request(None).is_err(), "the queue is full");
    admitted.first_token();
    let second = take(&gate, ticket);
    assert_eq!(held(&gate), (2, 1, 0));
    let blocked = queue(&gate, None);
    assert_eq!(held(&gate), (2, 1, 1), "both stay where they are");
    drop((admitted, second, blocked));
    idle_check(&gate);
}
