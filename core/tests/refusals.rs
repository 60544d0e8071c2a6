//! What a refusal says: how far it reaches, which limit, and how full.

mod common;

use common::*;
use tidegate::{Counts, Lane, Limit, Overload, Rejection, Scope};

fn overload(refusal: Rejection) -> Overload {
    *refusal.overload().expect("the gate was not stopped")
}

#[test]
fn a_rank_without_room_beside_a_worker_with_room_is_a_rank_refusal() {
    // Two ranks, R = 2, W = 1, Q = 0; rank 0 streams two, rank 1 has one
    // running and waiting: no ranked request can enter, an unranked one can.
    let gate = ranked(2, 1, 0, [0, 1]);
    let mut streaming = Vec::new();
    for _ in 0..2 {
        let mut permit = enter(&gate, Some(0));
        permit.first_token();
        streaming.push(permit);
    }
    let waiting = enter(&gate, Some(1));
    assert_eq!(
        gate.request(Some(0)).unwrap_err().scope(),
        Some(Scope::Rank(0))
    );
    assert_eq!(
        gate.try_admit(Some(1)).unwrap_err().scope(),
        Some(Scope::Rank(1))
    );
    let unranked = enter(&gate, None);
    assert_eq!(
        gate.request(Some(0)).unwrap_err().scope(),
        Some(Scope::Worker),
        "now nobody can enter"
    );
    drop((streaming, waiting, unranked));
    idle_check(&gate);
}

#[test]
fn an_unranked_refusal_reaches_the_worker() {
    let gate = ranked(1, 1, 0, [0, 1]);
    let running = [enter(&gate, None), enter(&gate, None)];
    for rank in [None, Some(77)] {
        let refusal = overload(gate.try_admit(rank).unwrap_err());
        assert_eq!(refusal.scope, Scope::Worker);
        assert_eq!(refusal.lane, Lane::Unspecified);
        assert!(refusal.of_worker);
    }
    drop(running);
    idle_check(&gate);
}

#[test]
fn a_full_worker_that_can_still_queue_is_a_rank_refusal() {
    let gate = ranked(1, 1, 1, [0, 1]);
    let running = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let own = queue(&gate, Some(0));
    assert_eq!(
        gate.request(Some(0)).unwrap_err().scope(),
        Some(Scope::Rank(0)),
        "others can still queue"
    );
    let last = queue(&gate, None);
    for rank in [Some(0), Some(1), None] {
        let refusal = gate.request(rank).unwrap_err();
        assert_eq!(refusal.scope(), Some(Scope::Worker), "rank {rank:?}");
        assert_eq!(overload(refusal).limit, Limit::RequestQueue);
    }
    drop((own, last));
    drop(running);
    idle_check(&gate);
}

#[test]
fn try_admit_names_the_engine_limit_even_when_there_is_queue_room() {
    let gate = gate(2, 1, 8);
    let mut first = enter(&gate, None);
    let refusal = overload(gate.try_admit(None).unwrap_err());
    assert_eq!(refusal.limit, Limit::EngineRequestWaiting);
    first.first_token();
    let second = enter(&gate, None);
    let refusal = overload(gate.try_admit(None).unwrap_err());
    assert_eq!(refusal.limit, Limit::EngineRequest);
    drop((first, second));
    idle_check(&gate);
}

#[test]
fn the_limit_its_value_and_the_counts_are_those_of_the_place_that_is_full() {
    let gate = ranked(2, 2, 0, [0, 6]);
    let mut own = [enter(&gate, Some(6)), enter(&gate, Some(6))];
    own[0].first_token();
    let refusal = overload(gate.try_admit(Some(6)).unwrap_err());
    let expected = Overload {
        lane: Lane::Rank(6),
        scope: Scope::Rank(6),
        limit: Limit::EngineRequest,
        of_worker: false,
        value: 2,
        counts: Counts {
            running: 2,
            waiting: 1,
            queued: 0,
        },
    };
    assert_eq!(refusal, expected);
    let others = [enter(&gate, None), enter(&gate, None)];
    let refusal = overload(gate.try_admit(Some(0)).unwrap_err());
    assert!(refusal.of_worker);
    assert_eq!((refusal.value, refusal.counts.running), (4, 4));
    assert_eq!(refusal.counts.waiting, 3);
    drop((own, others));
    idle_check(&gate);
}

#[test]
fn it_displays_as_the_server_being_overloaded_and_says_by_what() {
    let gate = ranked(1, 1, 1, [4]);
    let running = enter(&gate, Some(4));
    let queued = queue(&gate, Some(4));
    let refusal = gate.request(Some(4)).unwrap_err();
    let text = refusal.to_string();
    assert!(text.starts_with("Server overloaded:"), "{text}");
    for part in ["rank 4", "request_queue_limit 1", "running 1", "queued 1"] {
        assert!(text.contains(part), "{part} is missing from {text}");
    }
    let text = gate.request(None).unwrap_err().to_string();
    assert!(text.starts_with("Server overloaded:"), "{text}");
    assert!(text.contains("worker"), "{text}");
    drop((queued, running));
    idle_check(&gate);
}

#[test]
fn refusals_are_counted_by_lane_and_scope() {
    let gate = ranked(1, 1, 0, [0, 1]);
    let first = enter(&gate, Some(0));
    assert!(gate.try_admit(Some(0)).is_err());
    let second = enter(&gate, Some(1));
    assert!(gate.request(Some(0)).is_err());
    assert!(gate.request(None).is_err());
    let rank_0 = lane(&gate, Lane::Rank(0));
    assert_eq!((rank_0.rejected_rank, rank_0.rejected_worker), (1, 1));
    let unspecified = lane(&gate, Lane::Unspecified);
    assert_eq!(
        (unspecified.rejected_rank, unspecified.rejected_worker),
        (0, 1)
    );
    drop((first, second));
    idle_check(&gate);
}
