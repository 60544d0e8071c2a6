//! The engine's report: what it moves and what stays.

mod common;

use common::*;
use tidegate::limits::{MAX_RANKS, MAX_WORKER_ENGINE_LIMIT, MAX_WORKER_QUEUE_LIMIT};
use tidegate::{Gate, Lane, Limit, Limits, ReportError, Settings};

fn limits(gate: &Gate) -> (u32, u32, u32) {
    let Limits {
        engine_request_limit,
        engine_request_waiting_limit,
        request_queue_limit,
    } = gate.snapshot().limits;
    (
        engine_request_limit,
        engine_request_waiting_limit,
        request_queue_limit,
    )
}

#[test]
fn before_the_report_there_is_one_rank_and_everybody_is_unranked() {
    let gate = Gate::builder().build().unwrap();
    assert_eq!(limits(&gate), (10_000, 10_000, 20_000));
    assert_eq!(gate.snapshot().ranks(), 1);
    let permit = enter(&gate, Some(3));
    assert_eq!(permit.rank(), None);
    drop(permit);
    idle_check(&gate);
}

#[test]
fn defaults_follow_max_num_seqs() {
    let gate = Gate::builder().build().unwrap();
    let told = gate.report_engine(report(0..8, 256)).unwrap();
    assert_eq!(limits(&gate), (256, 256, 512));
    assert_eq!(told, gate.snapshot().limits);
    assert_eq!(gate.snapshot().ranks(), 8);
}

#[test]
fn a_report_without_max_num_seqs_leaves_the_fallbacks() {
    let gate = Gate::builder().build().unwrap();
    gate.report_engine(report([0], None)).unwrap();
    assert_eq!(limits(&gate), (10_000, 10_000, 20_000));
}

#[test]
fn explicit_settings_stay_each_by_itself() {
    let build = |settings| {
        let gate = Gate::builder().settings(settings).build().unwrap();
        gate.report_engine(report([0], 16)).unwrap();
        limits(&gate)
    };
    let none = Settings::default();
    let r = Settings {
        engine_request_limit: Some(3),
        ..none
    };
    let w = Settings {
        engine_request_waiting_limit: Some(3),
        ..none
    };
    let q = Settings {
        request_queue_limit: Some(0),
        ..none
    };
    assert_eq!(build(r), (3, 16, 32), "the queue default is not 2 x 3");
    assert_eq!(build(w), (16, 3, 32));
    assert_eq!(build(q), (16, 16, 0));
}

#[test]
fn the_builder_sets_one_limit_at_a_time() {
    let gate = Gate::builder()
        .engine_request_limit(5)
        .engine_request_waiting_limit(4)
        .request_queue_limit(3)
        .build()
        .unwrap();
    assert_eq!(limits(&gate), (5, 4, 3));
}

#[test]
fn requests_from_before_the_report_keep_what_they_hold_and_count_as_unranked() {
    let gate = gate(2, 2, 4);
    let early = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    gate.report_engine(report([0, 1], None)).unwrap();
    assert_eq!(lane(&gate, Lane::Unspecified).running, 2);
    assert_eq!(held_by(&gate, 0), (0, 0, 0));
    assert_eq!(early[0].rank(), None);
    let late = [enter(&gate, Some(0)), enter(&gate, Some(0))];
    assert!(
        gate.try_admit(Some(1)).is_err(),
        "the early ones fill the worker, though not the rank"
    );
    drop((early, late));
    idle_check(&gate);
}

#[test]
fn requests_queued_before_the_report_keep_their_age_in_unspecified() {
    let gate = gate(1, 1, 4);
    let holder = enter(&gate, None);
    let early = queue(&gate, Some(0));
    let mut second = queue(&gate, None);
    gate.report_engine(report([0, 1], None)).unwrap();
    // The worker of two ranks has room for one more: the oldest gets it.
    let early = take(&gate, early);
    assert_eq!(early.rank(), None);
    still_queued(&gate, &mut second);
    let mut late = queue(&gate, Some(0));
    drop(holder);
    let second = take(&gate, second);
    still_queued(&gate, &mut late);
    drop(early);
    let late = take(&gate, late);
    assert_eq!(late.rank(), Some(0));
    drop((second, late));
    idle_check(&gate);
}

#[test]
fn what_exceeds_the_reported_limits_drains_and_nothing_is_evicted() {
    let gate = Gate::builder().build().unwrap();
    let mut early: Vec<_> = (0..5).map(|_| enter(&gate, None)).collect();
    gate.report_engine(report([0, 1], 1)).unwrap();
    assert_eq!(held(&gate), (5, 5, 0));
    while early.len() > 2 {
        assert!(gate.try_admit(None).is_err());
        early.pop();
    }
    assert!(gate.try_admit(None).is_err(), "two are left, and two fit");
    early.pop();
    let late = enter(&gate, Some(1));
    assert_eq!(held(&gate), (2, 2, 0));
    drop((early, late));
    idle_check(&gate);
}

#[test]
fn unusable_reports_are_refused_and_the_old_state_stays() {
    let gate = Gate::builder().build().unwrap();
    let before = gate.snapshot();
    let too_many = 0..=MAX_RANKS as u32;
    for (unusable, why) in [
        (report([], 8), ReportError::NoRanks),
        (report([4, 2, 4], 8), ReportError::DuplicateRank(4)),
        (report(too_many, 8), ReportError::TooManyRanks(1025)),
    ] {
        let refusal = gate.report_engine(unusable).unwrap_err();
        assert_eq!(refusal, why);
        assert!(refusal.to_string().starts_with("engine report refused: "));
        assert_eq!(gate.snapshot(), before);
    }
    for max_num_seqs in [0, u32::MAX] {
        let refusal = gate.report_engine(report([0], max_num_seqs)).unwrap_err();
        assert!(matches!(refusal, ReportError::Limit(_)), "{refusal}");
        assert_eq!(gate.snapshot(), before);
    }
    gate.report_engine(report([7], 8)).unwrap();
    assert_eq!(gate.snapshot().ranks(), 1);
    assert_eq!(limits(&gate), (8, 8, 16), "the first usable one counts");
}

#[test]
fn other_ranks_are_refused_later_and_the_same_ones_move_the_defaults() {
    let gate = Gate::builder().request_queue_limit(5).build().unwrap();
    gate.report_engine(report([0, 1], 4)).unwrap();
    let refusal = gate.report_engine(report([0, 1, 2], 9)).unwrap_err();
    assert_eq!(refusal, ReportError::OtherRanks(vec![0, 1]));
    assert!(refusal.to_string().contains("restart"));
    assert_eq!(limits(&gate), (4, 4, 5));
    gate.report_engine(report([1, 0], 6)).unwrap();
    assert_eq!(limits(&gate), (6, 6, 5));
    assert_eq!(gate.snapshot().lanes.len(), 3);
}

#[test]
fn a_later_report_that_grows_the_defaults_lets_queued_work_in() {
    let gate = Gate::builder().build().unwrap();
    gate.report_engine(report([0], 1)).unwrap();
    let holder = enter(&gate, Some(0));
    let ticket = queue(&gate, Some(0));
    gate.report_engine(report([0], 2)).unwrap();
    drop((take(&gate, ticket), holder));
    idle_check(&gate);
}

#[test]
fn ranks_may_be_any_ids_and_lanes_come_in_their_order() {
    let gate = Gate::builder().build().unwrap();
    gate.report_engine(report([u32::MAX, 5, 0], 2)).unwrap();
    let lanes: Vec<_> = gate.snapshot().lanes.iter().map(|l| l.lane).collect();
    assert_eq!(
        lanes,
        [
            Lane::Unspecified,
            Lane::Rank(0),
            Lane::Rank(5),
            Lane::Rank(u32::MAX)
        ]
    );
    idle_check(&gate);
}

#[test]
fn sixty_four_ranks_at_the_fallback_limits_are_representable() {
    let gate = Gate::builder().build().unwrap();
    gate.report_engine(report(0..64, None)).unwrap();
    let permits: Vec<_> = (0..10_000).map(|_| enter(&gate, Some(63))).collect();
    let refusal = gate.try_admit(Some(63)).unwrap_err();
    assert_eq!(refusal.overload().unwrap().value, 10_000);
    let unranked = enter(&gate, None);
    assert_eq!(held(&gate), (10_001, 10_001, 0));
    drop((permits, unranked));
    idle_check(&gate);
}

#[test]
fn the_largest_worker_is_representable() {
    let ranks = MAX_RANKS as u32;
    let max = MAX_WORKER_ENGINE_LIMIT / ranks;
    let gate = ranked(max, max, MAX_WORKER_QUEUE_LIMIT / ranks, 0..ranks);
    let permits: Vec<_> = (0..max).map(|_| enter(&gate, Some(1))).collect();
    let refusal = gate.try_admit(Some(1)).unwrap_err();
    let overload = refusal.overload().unwrap();
    assert_eq!(overload.limit, Limit::EngineRequest);
    assert_eq!(
        (overload.value, overload.of_worker),
        (u64::from(max), false)
    );
    drop(permits);
    assert_eq!(held(&gate), (0, 0, 0));
}
