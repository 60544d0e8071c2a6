//! What ends waiting and running, and what the first token and the end let in.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::*;
use tidegate::{Lane, Source};

#[test]
fn the_first_token_ends_waiting_once() {
    let gate = gate(4, 4, 0);
    let mut permit = enter(&gate, None);
    let other = enter(&gate, None);
    assert!(permit.is_waiting());
    permit.first_token();
    permit.first_token();
    assert!(!permit.is_waiting());
    assert_eq!(held(&gate), (2, 1, 0), "the other one still waits");
    drop(permit);
    assert_eq!(held(&gate), (1, 1, 0));
    drop(other);
    idle_check(&gate);
}

#[test]
fn the_end_before_any_token_ends_both() {
    let gate = gate(4, 4, 0);
    let held_on = enter(&gate, None);
    drop(enter(&gate, None));
    assert_eq!(held(&gate), (1, 1, 0));
    drop(held_on);
    idle_check(&gate);
}

#[test]
fn the_end_after_the_first_token_ends_running_alone() {
    let gate = gate(4, 4, 0);
    let held_on = enter(&gate, None);
    let mut permit = enter(&gate, None);
    permit.first_token();
    drop(permit);
    assert_eq!(held(&gate), (1, 1, 0));
    drop(held_on);
    idle_check(&gate);
}

#[test]
fn a_first_token_lets_the_next_in_only_if_running_has_room_too() {
    let gate = gate(1, 1, 1);
    let mut permit = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    permit.first_token();
    still_queued(&gate, &mut ticket);
    drop(permit);
    drop(take(&gate, ticket));
    idle_check(&gate);
}

#[test]
fn an_end_lets_the_next_in_only_if_waiting_has_room_too() {
    let gate = gate(2, 1, 1);
    let mut streaming = enter(&gate, None);
    streaming.first_token();
    let mut waiting = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    drop(streaming);
    still_queued(&gate, &mut ticket);
    waiting.first_token();
    let permit = take(&gate, ticket);
    assert_eq!(held(&gate), (2, 1, 0));
    drop((permit, waiting));
    idle_check(&gate);
}

#[test]
fn a_waiting_limit_of_one_admits_one_request_per_first_token() {
    let gate = gate(10_000, 1, 3);
    let mut running = vec![enter(&gate, None)];
    running[0].first_token();
    assert_eq!(held(&gate), (1, 0, 0));
    running.push(enter(&gate, None));
    assert_eq!(held(&gate), (2, 1, 0));
    let mut tickets: std::collections::VecDeque<_> = (0..3).map(|_| queue(&gate, None)).collect();
    assert_eq!(held(&gate), (2, 1, 3));
    assert!(gate.request(None).is_err(), "the queue is full");
    for left in (0..3).rev() {
        running.last_mut().unwrap().first_token();
        running.push(take(&gate, tickets.pop_front().unwrap()));
        assert_eq!(held(&gate), (running.len() as u64, 1, left));
    }
    running.clear();
    idle_check(&gate);
}

#[test]
fn an_engine_limit_of_two_queues_the_third_and_sheds_the_fourth() {
    let gate = gate(2, 10_000, 1);
    let mut first = enter(&gate, None);
    let mut second = enter(&gate, None);
    first.first_token();
    second.first_token();
    assert_eq!(held(&gate), (2, 0, 0));
    let ticket = queue(&gate, None);
    assert_eq!(held(&gate), (2, 0, 1));
    assert!(gate.request(None).is_err());
    drop(first);
    let mut third = take(&gate, ticket);
    third.first_token();
    assert_eq!(held(&gate), (2, 0, 0));
    drop((second, third));
    idle_check(&gate);
}

#[test]
fn an_engine_limit_of_one_without_a_queue_sheds_the_second() {
    let gate = gate(1, 10_000, 0);
    let mut permit = enter(&gate, None);
    permit.first_token();
    assert!(gate.request(None).is_err());
    assert_eq!(held(&gate), (1, 0, 0));
    drop(permit);
    idle_check(&gate);
}

#[test]
fn a_panic_gives_back_what_the_request_held() {
    let gate = gate(1, 1, 1);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _permit = enter(&gate, None);
        let _ticket = queue(&gate, None);
        std::panic::resume_unwind(Box::new("the handler failed"));
    }));
    assert!(outcome.is_err());
    idle_check(&gate);
}

#[test]
fn a_forgotten_permit_leaks_its_slot_where_it_can_be_seen() {
    let gate = gate(2, 2, 0);
    std::mem::forget(enter(&gate, None));
    assert_eq!(held(&gate), (1, 1, 0));
    let other = enter(&gate, None);
    assert!(gate.try_admit(None).is_err());
    drop(other);
    assert_eq!(held(&gate), (1, 1, 0), "for ever");
}

#[test]
fn a_forgotten_ticket_keeps_its_place_where_it_can_be_seen() {
    let gate = gate(1, 1, 1);
    let permit = enter(&gate, None);
    std::mem::forget(queue(&gate, None));
    assert_eq!(held(&gate), (1, 1, 1));
    drop(permit);
    assert_eq!(held(&gate), (1, 1, 0));
    assert_eq!(offered(&gate), 1, "what it was offered stays reserved");
}

#[test]
fn a_permit_knows_its_rank_and_how_it_came_in() {
    let gate = ranked(1, 1, 1, [4]);
    let direct = enter(&gate, Some(4));
    assert_eq!(direct.rank(), Some(4));
    assert_eq!(direct.lane(), Lane::Rank(4));
    assert_eq!(direct.source(), Source::Direct);
    let ticket = queue(&gate, Some(4));
    drop(direct);
    let queued = take(&gate, ticket);
    assert_eq!((queued.rank(), queued.source()), (Some(4), Source::Queue));
    assert_eq!(Source::Direct.to_string(), "direct");
    assert_eq!(Source::Queue.to_string(), "queue");
    drop(queued);
    let seen = lane(&gate, Lane::Rank(4));
    assert_eq!((seen.admitted_direct, seen.admitted_queue), (1, 1));
    idle_check(&gate);
}
