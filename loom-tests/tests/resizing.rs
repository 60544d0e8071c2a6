//! Limits that move while requests come and go.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::EngineReport;
use tidegate_loom_tests::{check, enter, gate, idle, queue, settings};

#[test]
fn after_a_shrink_nobody_enters_above_the_new_limit() {
    check(3, "an arrival may beat the resize, never follow it", || {
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

#[test]
fn growth_that_meets_an_arrival_lets_it_in() {
    check(
        3,
        "no request queues behind room that has just come",
        || {
            let gate = gate(1, 1, 1);
            let holder = enter(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || {
                other.set_limits(settings(2, 2, 1)).unwrap();
            });
            drop(gate.admit_blocking(None).unwrap());
            thread.join().unwrap();
            drop(holder);
            idle(&gate);
        },
    );
}

#[test]
fn a_report_that_meets_an_arrival_lets_it_in_under_one_lane() {
    check(
        3,
        "ranked or not, the request is accounted for once",
        || {
            let gate = gate(1, 1, 1);
            let holder = enter(&gate, None);
            let other = gate.clone();
            let thread = thread::spawn(move || {
                let report = EngineReport {
                    ranks: vec![0, 1],
                    max_num_seqs: None,
                };
                other.report_engine(report).unwrap();
            });
            drop(gate.admit_blocking(Some(0)).unwrap());
            thread.join().unwrap();
            drop(holder);
            assert_eq!(gate.snapshot().total(|lane| lane.received), 2);
            idle(&gate);
        },
    );
}
