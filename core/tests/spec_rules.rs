//! The sequential gate by itself: what only its own surface shows.

mod common;

use common::*;
use tidegate::spec::{Answer, Number, SpecGate};

/// A sequential gate of two ranks, filled by unranked requests.
fn full() -> SpecGate {
    let mut gate = SpecGate::new(settings(2, 2, 4)).unwrap();
    gate.report_engine(&report([10, 20], None)).unwrap();
    for _ in 0..4 {
        assert!(matches!(gate.request(None), Ok(Answer::Admitted(0))));
    }
    gate
}

fn queue_at(gate: &mut SpecGate, rank: Option<u32>) -> Number {
    match gate.request(rank) {
        Ok(Answer::Queued(number)) => number,
        other => panic!("expected to queue, got {other:?}"),
    }
}

#[test]
fn offers_come_in_the_order_of_age_over_all_lanes() {
    let mut gate = full();
    let queued = [Some(20), None, Some(10), Some(20)].map(|rank| queue_at(&mut gate, rank));
    for _ in 0..4 {
        gate.release(0, true);
    }
    assert_eq!(gate.take_offers(), queued);
    assert!(gate.take_offers().is_empty(), "told once");
}

#[test]
fn one_change_may_make_several_offers() {
    let mut gate = full();
    let queued = [Some(20), Some(10), None].map(|rank| queue_at(&mut gate, rank));
    gate.set_limits(settings(4, 4, 4)).unwrap();
    assert_eq!(gate.take_offers(), queued);
}

#[test]
fn a_request_is_queued_until_it_is_offered_and_taken_only_after() {
    let mut gate = full();
    let number = queue_at(&mut gate, Some(10));
    assert_eq!(gate.lane_at(number.lane()), tidegate::Lane::Rank(10));
    assert!(gate.is_queued(number) && !gate.take(number));
    gate.release(0, true);
    assert!(!gate.is_queued(number) && gate.take(number));
}

#[test]
fn a_withdrawn_offer_goes_to_the_next() {
    let mut gate = full();
    let first = queue_at(&mut gate, Some(10));
    let second = queue_at(&mut gate, None);
    gate.release(0, true);
    gate.cancel(first);
    assert_eq!(gate.take_offers(), [first, second]);
    assert!(gate.take(second));
}
