//! Limits that move while requests come and go.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::Gate;
use tidegate::model::enters_at_once;
use tidegate_loom_tests::{
    check, check_at_length, enter, gate, granted, handle, idle, is_in, look, manual, queue, report,
    settings, with_ranks,
};

#[test]
fn after_a_shrink_nobody_enters_above_the_new_limit() {
    check_at_length(3, "an arrival may beat the resize, never follow it", || {
        let gate = gate(2, 2, 0);
        let holder = enter(&gate, None);
        let other = gate.clone();
        let thread = thread::spawn(move || {
            let permit = other.try_admit_owned(None);
            // Given back, so that the count may come down to the limit.
            permit.is_ok()
        });
        gate.set_limits(settings(1, 1, 0)).unwrap();
        assert!(gate.try_admit(None).is_err(), "one is running");
        thread.join().unwrap();
        drop(holder);
        idle(&gate);
    });
}

#[test]
fn a_shrink_whose_turn_another_runs_holds_once_it_has_returned() {
    check(
        3,
        "who resizes does not always run the turn after it",
        || {
            let gate = handle(manual(2, 2, 0));
            let [first, _second] = [enter(&gate, None), enter(&gate, None)];
            let other = gate.clone();
            let thread = thread::spawn(move || other.settle());
            gate.set_limits(settings(1, 1, 0)).unwrap();
            drop(first);
            assert!(!enters_at_once(&gate), "one is running");
            thread.join().unwrap();
        },
    );
}

#[test]
fn a_release_that_meets_a_shrink_does_not_slip_past_it() {
    check(
        3,
        "the count only falls once the resize has returned",
        || {
            let gate = gate(2, 2, 1);
            let holders = (enter(&gate, None), enter(&gate, None));
            let ticket = queue(&gate, None);
            let thread = thread::spawn(move || drop(holders.0));
            gate.set_limits(settings(1, 1, 1)).unwrap();
            let then = gate.snapshot().worker.running;
            thread.join().unwrap();
            gate.settle();
            let now = gate.snapshot().worker.running;
            assert!(now <= then.max(1), "{then} running became {now}");
            drop(holders.1);
            drop(ticket);
            idle(&gate);
        },
    );
}

fn growth_meets_an_arrival(gate: Gate, grow: impl FnOnce(&Gate) + Send + 'static) {
    let gate = handle(gate);
    let _holder = enter(&gate, None);
    let other = gate.clone();
    let thread = thread::spawn(move || grow(&other));
    let mut arrival = gate.request_owned(Some(0)).unwrap();
    thread.join().unwrap();
    assert!(is_in(&mut arrival));
    assert_eq!(gate.snapshot().worker.running, 2, "accounted for once");
}

#[test]
fn growth_that_meets_an_arrival_lets_it_in() {
    check_at_length(
        3,
        "no request queues behind room that has just come",
        || {
            growth_meets_an_arrival(gate(1, 1, 1), |gate| {
                gate.set_limits(settings(2, 2, 1)).unwrap();
            });
        },
    );
}

#[test]
fn a_report_that_meets_an_arrival_lets_it_in_under_one_lane() {
    check_at_length(3, "ranked or not, the room that came is used", || {
        growth_meets_an_arrival(gate(1, 1, 1), |gate| {
            gate.report_engine(report(&[0, 1])).unwrap();
        });
    });
}

#[test]
fn a_report_that_meets_an_arrival_at_once_accounts_for_it_once() {
    check_at_length(3, "under its rank or none, and given back there", || {
        let gate = handle(gate(2, 2, 0));
        let other = gate.clone();
        let thread = thread::spawn(move || drop(other.try_admit(Some(1))));
        gate.report_engine(report(&[0, 1])).unwrap();
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn a_debt_is_paid_before_anybody_is_let_in() {
    check(3, "two releases after a shrink: the second is room", || {
        let gate = handle(with_ranks(manual(2, 2, 1)));
        let [first, second, third] = [Some(0), Some(0), Some(1)].map(|rank| enter(&gate, rank));
        gate.set_limits(settings(1, 1, 1)).unwrap();
        let mut ticket = queue(&gate, Some(1));
        drop(third);
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        assert!(look(&mut ticket).is_none(), "two still run");
        drop(first);
        turn.join().unwrap();
        gate.settle();
        let _permit = granted(ticket);
        assert_eq!(gate.snapshot().worker.running, 2, "and nobody else");
        assert!(gate.try_admit(None).is_err());
        drop(second);
    });
}

#[test]
fn a_release_elsewhere_is_for_the_rank_that_owes() {
    check(
        3,
        "what comes during the turn is not offered past a debt",
        || {
            let gate = handle(with_ranks(manual(2, 2, 1)));
            let [first, second, third, fourth] =
                [Some(0), Some(0), Some(1), Some(1)].map(|rank| enter(&gate, rank));
            gate.set_limits(settings(1, 1, 1)).unwrap();
            let mut ticket = queue(&gate, Some(1));
            drop(fourth);
            let other = gate.clone();
            let turn = thread::spawn(move || other.settle());
            drop(third);
            turn.join().unwrap();
            gate.settle();
            assert!(look(&mut ticket).is_none(), "two still run");
            drop(first);
            gate.settle();
            drop((granted(ticket), second));
            idle(&gate);
        },
    );
}

#[test]
fn a_queue_that_shrinks_under_an_arrival_keeps_its_limit() {
    check(
        3,
        "who came first keeps its place, nobody comes after",
        || {
            let gate = handle(gate(1, 1, 1));
            let holder = enter(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || other.request_owned(None));
            gate.set_limits(settings(1, 1, 0)).unwrap();
            let then = gate.snapshot().worker.queued;
            let arrival = thread.join().unwrap();
            assert!(gate.snapshot().worker.queued <= then);
            assert!(gate.request(None).is_err());
            drop((arrival, holder));
            gate.settle();
            assert_eq!(gate.snapshot().worker.running, 0);
        },
    );
}

#[test]
fn a_report_that_meets_a_release_loses_no_capacity() {
    check(
        3,
        "what was taken from one share comes back to several",
        || {
            let gate = handle(gate(1, 1, 1));
            let holder = enter(&gate, None);
            let releaser = thread::spawn(move || drop(holder));
            gate.report_engine(report(&[0, 1])).unwrap();
            releaser.join().unwrap();
            idle(&gate);
            let both = (enter(&gate, Some(0)), enter(&gate, Some(1)));
            assert!(gate.try_admit(None).is_err());
            drop(both);
        },
    );
}
