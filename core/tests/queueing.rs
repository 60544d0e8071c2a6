//! Order of the queue, offers, and work conservation.

mod common;

use common::*;
use tidegate::{Lane, Ticket};

#[test]
fn within_a_lane_the_order_is_first_in_first_out() {
    let gate = gate(1, 1, 5);
    let mut running = enter(&gate, None);
    let mut tickets: Vec<_> = (0..5).map(|_| queue(&gate, None)).collect();
    while !tickets.is_empty() {
        drop(running);
        running = take(&gate, tickets.remove(0));
        for younger in &mut tickets {
            still_queued(&gate, younger);
        }
    }
    drop(running);
    idle_check(&gate);
}

#[test]
fn a_ticket_tells_its_position_in_its_lane() {
    let gate = ranked(1, 1, 4, [0, 1]);
    let mut running = enter(&gate, Some(0));
    let other = enter(&gate, Some(1));
    let mut tickets: Vec<_> = (0..4).map(|_| queue(&gate, Some(0))).collect();
    let elsewhere = queue(&gate, Some(1));
    let told = |tickets: &[Ticket<'_>]| tickets.iter().map(Ticket::position).collect::<Vec<_>>();
    assert_eq!(told(&tickets), [1, 2, 3, 4]);
    assert_eq!(
        (elsewhere.position(), elsewhere.lane()),
        (1, Some(Lane::Rank(1)))
    );

    // Turns of the lane count it down, and those of others do not.
    drop(other);
    drop(take(&gate, elsewhere));
    drop(running);
    gate.settle();
    assert_eq!(
        told(&tickets),
        [0, 1, 2, 3],
        "the first has been offered capacity"
    );
    running = take(&gate, tickets.remove(0));
    // Whoever comes is behind.
    tickets.push(queue(&gate, Some(0)));
    assert_eq!(told(&tickets), [1, 2, 3, 4]);

    // Of those who leave, it is known that they are not queued any more.
    tickets.remove(0).cancel();
    assert_eq!(told(&tickets), [2, 3, 3]);
    drop(running);
    running = take(&gate, tickets.remove(0));
    assert_eq!(told(&tickets), [2, 2]);
    tickets.remove(0).cancel();
    assert_eq!(told(&tickets), [1]);
    drop((running, tickets));
    idle_check(&gate);
}

#[test]
fn over_all_lanes_the_oldest_that_fits_goes_first() {
    let gate = ranked(2, 2, 4, [0, 1]);
    // The worker is full, though no rank is.
    let mut running: Vec<_> = (0..4).map(|_| enter(&gate, None)).collect();
    let first = queue(&gate, Some(1));
    let mut second = queue(&gate, None);
    let mut third = queue(&gate, Some(0));
    running.pop();
    let first = take(&gate, first);
    still_queued(&gate, &mut second);
    still_queued(&gate, &mut third);
    running.pop();
    let second = take(&gate, second);
    still_queued(&gate, &mut third);
    running.pop();
    let third = take(&gate, third);
    drop((running, first, second, third));
    idle_check(&gate);
}

#[test]
fn a_blocked_lane_never_holds_up_another() {
    let gate = ranked(1, 1, 4, [0, 1]);
    let stays = enter(&gate, Some(0));
    let leaves = enter(&gate, Some(1));
    let mut blocked = queue(&gate, Some(0));
    let mut next = queue(&gate, Some(1));
    let unranked = queue(&gate, None);
    still_queued(&gate, &mut next);
    drop(leaves);
    let next = take(&gate, next);
    still_queued(&gate, &mut blocked);
    drop(next);
    let unranked = take(&gate, unranked);
    drop(unranked);
    drop(stays);
    drop(take(&gate, blocked));
    idle_check(&gate);
}

#[test]
fn one_change_lets_in_as_many_as_fit() {
    let gate = ranked(2, 2, 8, [0, 1]);
    let running: Vec<_> = (0..4).map(|_| enter(&gate, None)).collect();
    let tickets: Vec<_> = [Some(0), Some(0), Some(0), Some(1)]
        .into_iter()
        .map(|rank| queue(&gate, rank))
        .collect();
    drop(running);
    assert_eq!(held(&gate), (3, 3, 1), "two at rank 0, one at rank 1");
    assert_eq!(held_by(&gate, 0), (2, 2, 1));
    assert_eq!(offered(&gate), 3);
    drop(tickets);
    idle_check(&gate);
}

#[test]
fn an_offer_counts_as_running_and_waiting_until_taken_and_as_admitted_only_then() {
    let gate = ranked(1, 1, 1, [0]);
    let running = enter(&gate, Some(0));
    let ticket = queue(&gate, Some(0));
    drop(running);
    let seen = lane(&gate, Lane::Rank(0));
    assert_eq!((seen.running, seen.waiting, seen.queued), (1, 1, 0));
    assert_eq!((seen.offered, seen.admitted_queue), (1, 0));
    assert!(seen.conserves());
    assert!(
        gate.try_admit(Some(0)).is_err(),
        "what is offered is reserved"
    );
    let permit = take(&gate, ticket);
    let seen = lane(&gate, Lane::Rank(0));
    assert_eq!((seen.offered, seen.admitted_queue), (0, 1));
    assert!(seen.conserves());
    drop(permit);
    idle_check(&gate);
}

#[test]
fn an_offer_that_nobody_takes_is_passed_on_when_its_ticket_goes() {
    let gate = gate(1, 1, 2);
    let running = enter(&gate, None);
    let never_polled = queue(&gate, None);
    let mut next = queue(&gate, None);
    drop(running);
    assert_eq!(offered(&gate), 1);
    still_queued(&gate, &mut next);
    drop(never_polled);
    drop(take(&gate, next));
    let seen = lane(&gate, Lane::Unspecified);
    assert_eq!((seen.received, seen.admitted(), seen.cancelled), (3, 2, 1));
    idle_check(&gate);
}

#[test]
fn at_rest_no_queued_request_fits() {
    let gate = ranked(2, 1, 8, [0, 1]);
    let mut running = vec![enter(&gate, Some(0)), enter(&gate, Some(1))];
    let mut tickets: Vec<_> = [Some(0), None, Some(1), Some(0), None, Some(1)]
        .into_iter()
        .map(|rank| queue(&gate, rank))
        .collect();
    let mut step = 0;
    while !running.is_empty() {
        if step % 2 == 0 {
            running[0].first_token();
        } else {
            drop(running.remove(0));
        }
        step += 1;
        gate.settle();
        let mut left = Vec::new();
        for mut ticket in tickets {
            match poll(&mut ticket) {
                std::task::Poll::Ready(admitted) => running.push(admitted.unwrap()),
                std::task::Poll::Pending => left.push(ticket),
            }
        }
        tickets = left;
        let (r, w, queued) = held(&gate);
        assert!(
            queued == 0 || r == 4 || w == 2 || all_ranked_and_blocked(&gate),
            "{:?}",
            gate.snapshot()
        );
    }
    assert!(tickets.is_empty(), "somebody was left behind");
    idle_check(&gate);
}

fn all_ranked_and_blocked(gate: &tidegate::Gate) -> bool {
    let lanes = gate.snapshot().lanes;
    lanes.iter().all(|lane| {
        lane.queued == 0
            || (lane.lane != Lane::Unspecified && (lane.running >= 2 || lane.waiting >= 1))
    })
}
