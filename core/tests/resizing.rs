//! Limits that move while requests are here.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::*;
use tidegate::{Gate, Limit, Settings};

#[test]
fn a_shrunk_gate_admits_nobody_until_it_is_below_its_limit() {
    let gate = gate(4, 4, 100);
    let mut running: Vec<_> = (0..4).map(|_| enter(&gate, None)).collect();
    let mut tickets: std::collections::VecDeque<_> = (0..20).map(|_| queue(&gate, None)).collect();
    gate.set_limits(settings(2, 2, 100)).unwrap();
    assert_eq!(held(&gate), (4, 4, 20), "nothing is revoked or evicted");
    for left in [3, 2] {
        running.pop();
        assert_eq!(held(&gate), (left, left, 20), "nobody may enter yet");
    }
    let mut queued = 20;
    while let Some(ticket) = tickets.pop_front() {
        drop(running.remove(0));
        running.push(take(&gate, ticket));
        queued -= 1;
        assert_eq!(held(&gate), (2, 2, queued), "never above two again");
    }
    running.clear();
    idle_check(&gate);
}

#[test]
fn a_shrunk_waiting_limit_counts_only_those_who_wait() {
    let gate = gate(4, 4, 4);
    let mut running: Vec<_> = (0..3).map(|_| enter(&gate, None)).collect();
    gate.set_limits(settings(4, 1, 4)).unwrap();
    let mut ticket = queue(&gate, None);
    running[0].first_token();
    still_queued(&gate, &mut ticket);
    running[1].first_token();
    still_queued(&gate, &mut ticket);
    running[2].first_token();
    let last = take(&gate, ticket);
    assert_eq!(held(&gate), (4, 1, 0));
    drop((running, last));
    idle_check(&gate);
}

#[test]
fn a_shrunk_queue_evicts_nobody_and_takes_nobody() {
    let gate = gate(1, 1, 3);
    let holder = enter(&gate, None);
    let mut tickets: Vec<_> = (0..3).map(|_| queue(&gate, None)).collect();
    gate.set_limits(settings(1, 1, 1)).unwrap();
    assert_eq!(held(&gate), (1, 1, 3));
    assert!(gate.request(None).is_err());
    tickets.pop();
    tickets.pop();
    let refusal = gate.request(None).unwrap_err();
    assert_eq!(refusal.overload().unwrap().limit, Limit::RequestQueue);
    tickets.pop();
    let stays = queue(&gate, None);
    drop((holder, stays));
    idle_check(&gate);
}

#[test]
fn growth_lets_queued_work_in_at_once() {
    let gate = ranked(1, 1, 8, [0, 1]);
    let holders = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let tickets: Vec<_> = (0..5).map(|_| queue(&gate, Some(0))).collect();
    gate.set_limits(settings(4, 3, 8)).unwrap();
    assert_eq!(held_by(&gate, 0), (3, 3, 3), "the smaller limit counts");
    gate.set_limits(settings(4, 4, 8)).unwrap();
    assert_eq!(held_by(&gate, 0), (4, 4, 2));
    let admitted: Vec<_> = tickets
        .into_iter()
        .take(3)
        .map(|t| take(&gate, t))
        .collect();
    drop((admitted, holders));
    idle_check(&gate);
}

#[test]
fn a_limit_that_is_not_named_stays_as_it_is() {
    let gate = gate(4, 3, 2);
    let told = gate
        .set_limits(Settings {
            engine_request_limit: Some(9),
            ..Settings::default()
        })
        .unwrap();
    assert_eq!(told, gate.snapshot().limits);
    assert_eq!(told.engine_request_limit, 9);
    assert_eq!(told.engine_request_waiting_limit, 3);
    assert_eq!(told.request_queue_limit, 2);
    let untouched = gate.set_limits(Settings::default()).unwrap();
    assert_eq!(untouched, told);
}

#[test]
fn a_limit_out_of_range_changes_nothing_and_names_the_range() {
    let gate = gate(4, 4, 4);
    let before = gate.snapshot();
    for (asked, limit, min, max) in [
        (settings(0, 2, 2), Limit::EngineRequest, 1, 12_287),
        (settings(12_288, 2, 2), Limit::EngineRequest, 1, 12_287),
        (settings(2, 0, 2), Limit::EngineRequestWaiting, 1, 12_287),
        (
            settings(2, 12_288, 2),
            Limit::EngineRequestWaiting,
            1,
            12_287,
        ),
        (settings(2, 2, 131_072), Limit::RequestQueue, 0, 131_071),
    ] {
        let refused = gate.set_limits(asked).unwrap_err();
        assert_eq!((refused.limit, refused.min, refused.max), (limit, min, max));
        assert!(refused.to_string().contains(&max.to_string()));
        assert_eq!(gate.snapshot(), before);
        assert_eq!(
            Gate::builder().settings(asked).build().unwrap_err(),
            refused
        );
    }
    for largest in [settings(1, 1, 0), settings(12_287, 12_287, 131_071)] {
        gate.set_limits(largest).unwrap();
    }
}

#[test]
fn limits_set_before_the_report_are_explicit() {
    let gate = Gate::builder().build().unwrap();
    gate.set_limits(Settings {
        engine_request_limit: Some(2),
        ..Settings::default()
    })
    .unwrap();
    let limits = gate.report_engine(report([0], 64)).unwrap();
    assert_eq!(limits.engine_request_limit, 2);
    assert_eq!(limits.engine_request_waiting_limit, 64);
}

#[test]
fn no_release_slips_past_a_shrunk_limit() {
    for _ in 0..50 {
        let gate = gate(4, 4, 16);
        let full = AtomicBool::new(false);
        let running: Vec<_> = (0..4).map(|_| enter(&gate, None)).collect();
        let tickets: Vec<_> = (0..16).map(|_| queue(&gate, None)).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !full.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                drop(running);
            });
            full.store(true, Ordering::Release);
            gate.set_limits(settings(2, 2, 16)).unwrap();
            // Whoever was offered a place before the resize may stay; from here
            // on the count may only fall until it is at the limit.
            let mut last = gate.snapshot().worker.running;
            for _ in 0..200 {
                let now = gate.snapshot().worker.running;
                assert!(now <= last.max(2), "{last} running became {now}");
                last = now;
            }
        });
        drop(tickets);
        idle_check(&gate);
    }
}
