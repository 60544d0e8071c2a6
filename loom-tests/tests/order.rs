//! Who comes before whom.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::thread;
use tidegate::model::{Budget, Slots};
use tidegate::{Admission, Gate};
use tidegate_loom_tests::{
    check, check_at_length, enter, granted, handle, idle, is_in, look, manual, queue, settings,
    with_ranks,
};

#[test]
fn a_turn_sees_no_arrival_before_one_that_queued_earlier() {
    check(
        3,
        "marks are read one after another, and order still holds",
        || {
            let gate = handle(manual(1, 1, 3));
            let mut holder = enter(&gate, None);
            // The first two slots are one chunk, and those that follow another: the
            // next two arrivals are marked in different words.
            let [first, second, third] = [(); 3].map(|()| queue(&gate, None));
            drop((second, third, first));
            // Rings for a turn, which finds no running place yet.
            holder.first_token();
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            let mut older = gate.request_owned(None).expect("there is queue room");
            let mut younger = gate.request_owned(None).expect("there is queue room");
            drop(holder);
            turn.join().unwrap();
            let in_order = is_in(&mut older) || !is_in(&mut younger);
            assert!(in_order, "the younger passed");
            drop((older, younger));
            idle(&gate);
        },
    );
}

#[test]
fn room_that_comes_during_a_turn_goes_to_the_oldest_that_fits() {
    check(
        3,
        "a request that lacked only its rank's room, and then does not",
        || {
            let gate = with_ranks(manual(1, 1, 2));
            let holders = (enter(&gate, Some(0)), enter(&gate, Some(1)));
            let older = queue(&gate, Some(0));
            let mut younger = queue(&gate, None);
            let thread = thread::spawn(move || drop(holders.0));
            // A turn that meets the release.
            gate.set_limits(settings(1, 1, 2)).unwrap();
            thread.join().unwrap();
            gate.settle();
            assert!(look(&mut younger).is_none(), "the younger passed");
            drop((granted(older), younger, holders.1));
            idle(&gate);
        },
    );
}

/// A gate that its last queued request left shut, with room for one, and a turn
/// that is about to find that out.
fn about_to_open(rank: Option<u32>) -> Arc<Gate> {
    let gate = match rank {
        Some(_) => with_ranks(manual(1, 1, 2)),
        None => manual(1, 1, 2),
    };
    let holder = enter(&gate, rank);
    queue(&gate, rank).cancel();
    drop(holder);
    handle(gate)
}

fn a_newcomer_meets_a_turn_that_opens(rank: Option<u32>) {
    let gate = about_to_open(rank);
    let other = gate.clone();
    let turn = thread::spawn(move || other.settle());
    let first = gate.request(rank).expect("there is queue room");
    if let Admission::Queued(_) = &first {
        assert!(gate.try_admit(rank).is_err(), "the queue was passed");
    }
    turn.join().unwrap();
    drop(first);
    gate.settle();
    idle(&gate);
}

#[test]
fn a_newcomer_never_passes_one_that_queued_as_the_gate_opened() {
    check_at_length(
        3,
        "the turn clears no flag of an arrival it has not seen",
        || {
            a_newcomer_meets_a_turn_that_opens(None);
        },
    );
}

#[test]
fn a_newcomer_never_passes_one_of_its_rank_that_queued_as_it_opened() {
    check_at_length(3, "the rank's own flag is kept as the worker's is", || {
        a_newcomer_meets_a_turn_that_opens(Some(0));
    });
}

#[test]
fn one_turn_serves_lanes_in_the_order_they_came() {
    check(3, "two lanes and one who comes late, one place", || {
        let gate = handle(with_ranks(manual(1, 1, 2)));
        let holders = (enter(&gate, Some(0)), enter(&gate, Some(1)));
        let older = queue(&gate, None);
        let mut younger = queue(&gate, Some(1));
        drop(holders.1);
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        let mut youngest = gate.request_owned(Some(1)).unwrap();
        turn.join().unwrap();
        gate.settle();
        assert!(look(&mut younger).is_none() && !is_in(&mut youngest));
        drop((granted(older), younger, youngest, holders.0));
        idle(&gate);
    });
}

#[test]
fn flags_of_an_unseen_arrival_outlast_the_turn() {
    check(4, "marks before flags, against flags before marks", || {
        let pieces = Arc::new((Budget::new(2, 1, 1), Slots::new()));
        // Somebody was here, and left.
        pieces.0.announce();
        let slot = pieces.1.acquire();
        let turns = pieces.clone();
        let turn = thread::spawn(move || {
            let (budget, slots) = &*turns;
            let mut listed = false;
            loop {
                budget.before_look();
                listed |= !slots.drain().is_empty();
                if !budget.relax(listed) {
                    return;
                }
            }
        });
        let (budget, slots) = &*pieces;
        slots.occupy(slot, 0);
        budget.announce();
        assert!(budget.enter_unranked(0).is_none(), "the queue was passed");
        turn.join().unwrap();
        assert!(budget.enter_unranked(0).is_none(), "the queue was passed");
    });
}
