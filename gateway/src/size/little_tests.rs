use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::size::reading::LaneReading;

const RANK: Lane = Lane::Rank(0);

/// A steady load: readings a second, `rate` admitted a second, `waiting` always.
fn steady(seconds: u64, rate: u64, waiting: u64) -> Vec<Reading> {
    (0..=seconds)
        .map(|second| {
            let lane = LaneReading {
                waiting,
                received: 7 + rate * second,
                admitted_direct: 7 + rate * second,
                ..LaneReading::default()
            };
            let lanes = BTreeMap::from([(RANK, lane), (Lane::Unspecified, LaneReading::default())]);
            Reading {
                at: Duration::from_secs(second),
                lanes,
            }
        })
        .collect()
}

/// The last reading of a lane, to be changed.
fn last(readings: &mut [Reading], lane: Lane) -> &mut LaneReading {
    let end = readings.len() - 1;
    readings[end].lanes.get_mut(&lane).unwrap()
}

fn reason(readings: &[Reading], rank: Option<u32>) -> &'static str {
    let why = size(readings, rank).unwrap_err();
    assert!(!why.to_string().is_empty());
    why.key()
}

#[test]
fn fifty_a_second_that_wait_240_ms_are_12() {
    for readings in [steady(60, 50, 12), steady(1, 50, 12)] {
        let sizing = size(&readings, Some(0)).unwrap();
        assert_eq!(sizing.limit, 12);
        assert!((sizing.waiting - 12.0).abs() < 1e-9);
        assert!((sizing.rate - 50.0).abs() < 1e-9);
        assert!((sizing.mean_wait - 0.24).abs() < 1e-9);
        assert_eq!(size(&readings, None).unwrap(), sizing);
    }
}

#[test]
fn both_sources_and_one_ranks_unspecified_traffic_count() {
    let mut readings = steady(10, 0, 0);
    for (second, reading) in (0..).zip(&mut readings) {
        let lane = reading.lanes.get_mut(&Lane::Unspecified).unwrap();
        (lane.waiting, lane.admitted_direct, lane.received) = (3, 10 * second, 10 * second);
    }
    let sizing = size(&readings, Some(0)).unwrap();
    assert_eq!((sizing.limit, sizing.admitted), (3, 100));
    // Before a report there is nothing else.
    readings
        .iter_mut()
        .for_each(|reading| _ = reading.lanes.remove(&RANK));
    assert_eq!(size(&readings, None).unwrap().limit, 3);
    assert_eq!(reason(&readings, Some(0)), "no_such_rank");
}

#[test]
fn each_unusable_window_is_refused_with_its_reason() {
    let good = steady(10, 50, 12);
    let with = |change: fn(&mut Vec<Reading>)| {
        let mut readings = good.clone();
        change(&mut readings);
        reason(&readings, Some(0))
    };
    assert_eq!(with(|all| last(all, RANK).queued = 1), "queueing");
    assert_eq!(with(|all| last(all, RANK).admitted_queue = 1), "queueing");
    assert_eq!(with(|all| last(all, RANK).rejected = 1), "rejections");
    assert_eq!(with(|all| last(all, RANK).cancelled = 26), "cancellations");
    assert_eq!(with(|all| last(all, RANK).received = 0), "restarted");
    assert_eq!(with(|all| all.truncate(1)), "too_few_samples");
    assert_eq!(with(Vec::clear), "too_few_samples");
    assert_eq!(with(|all| *all = steady(10, 1, 1)), "too_few_samples");
    assert_eq!(with(|all| all.swap(3, 5)), "time");
    assert_eq!(
        with(|all| all.iter_mut().for_each(|one| one.at = Duration::ZERO)),
        "time"
    );
    assert_eq!(
        with(|all| _ = all[10].lanes.insert(Lane::Rank(1), LaneReading::default())),
        "ranks_changed"
    );
    assert_eq!(reason(&good, Some(7)), "no_such_rank");
    let nobody = [0, 1].map(Duration::from_secs).map(|at| Reading {
        at,
        ..Reading::default()
    });
    assert_eq!(reason(&nobody, None), "too_few_samples");
    assert_eq!(
        with(|all| all.iter_mut().for_each(|one| one.lanes.clear())),
        "no_such_rank"
    );
    // One in 20 may leave.
    let mut few = good;
    last(&mut few, RANK).cancelled = 25;
    assert_eq!(size(&few, None).unwrap().cancelled, 25);
}

/// Two ranks, of which the second has this load.
fn two(readings: &[Reading], second: &[Reading]) -> Vec<Reading> {
    let mut readings = readings.to_vec();
    for (one, other) in readings.iter_mut().zip(second) {
        one.lanes.insert(Lane::Rank(1), other.lanes[&RANK]);
    }
    readings
}

#[test]
fn of_several_ranks_the_fullest_counts_and_an_idle_one_does_not() {
    let both = two(&steady(10, 50, 12), &steady(10, 50, 20));
    let sizing = size(&both, None).unwrap();
    assert_eq!((sizing.rank, sizing.ranks, sizing.limit), (Some(1), 2, 20));
    assert_eq!(size(&both, Some(0)).unwrap().limit, 12);
    let idle = two(&steady(10, 50, 12), &steady(10, 0, 0));
    assert_eq!(size(&idle, None).unwrap().rank, Some(0));
    assert_eq!(reason(&idle, Some(1)), "too_few_samples");
}

#[test]
fn several_ranks_and_requests_that_name_none_say_nothing() {
    let mut both = two(&steady(10, 50, 12), &steady(10, 50, 20));
    last(&mut both, Lane::Unspecified).received = 1;
    assert_eq!(reason(&both, None), "unspecified_rank");
    assert_eq!(reason(&both, Some(0)), "unspecified_rank");
}

proptest! {
    /// Any load that begins and ends empty, looked at whenever something happens:
    /// the area under the count is the sum of the waits, whatever the order.
    #[test]
    fn the_mean_wait_is_that_of_the_requests(
        waits in prop::collection::vec((0u64..100, 1u64..50), 20..60),
    ) {
        // A gauge that steps is read just before and at each step.
        let mut readings = Vec::new();
        for second in 0..=150u64 {
            let waiting = |at: u64| waits.iter().filter(|(from, time)| (*from..from + time).contains(&at)).count() as u64;
            let admitted = waits.iter().filter(|(from, _)| *from <= second).count() as u64;
            for waiting in [second.checked_sub(1).map_or(0, waiting), waiting(second)] {
                let lane = LaneReading { waiting, received: admitted, admitted_direct: admitted, ..LaneReading::default() };
                readings.push(Reading { at: Duration::from_secs(second), lanes: BTreeMap::from([(RANK, lane)]) });
            }
        }
        // The first reading is before anything came.
        let empty = Reading { at: Duration::ZERO, lanes: BTreeMap::from([(RANK, LaneReading::default())]) };
        readings.insert(0, empty);
        let sizing = size(&readings, None).unwrap();
        let mean = waits.iter().map(|(_, time)| *time as f64).sum::<f64>() / waits.len() as f64;
        prop_assert!((sizing.mean_wait - mean).abs() < 1e-6, "{} {mean}", sizing.mean_wait);
        prop_assert!(sizing.limit as f64 >= sizing.waiting - 1e-6);
        prop_assert!((sizing.limit as f64) < sizing.waiting + 1.0);
    }

    #[test]
    fn any_readings_are_answered(
        rows in prop::collection::vec((0u64..50, 0u64..9, any::<[u8; 6]>()), 0..6),
        rank in prop::option::of(0u32..3),
    ) {
        let readings: Vec<Reading> = rows.iter().map(|(at, lanes, counts)| {
            let [waiting, queued, received, admitted_direct, rejected, cancelled] = counts.map(u64::from);
            let lane = LaneReading { waiting, queued, received, admitted_direct, admitted_queue: 0, rejected, cancelled };
            let all = [Lane::Unspecified, Lane::Rank(0), Lane::Rank(1)];
            let there = all.into_iter().enumerate().filter(|(bit, _)| lanes >> bit & 1 == 1);
            Reading { at: Duration::from_secs(*at), lanes: there.map(|(_, name)| (name, lane)).collect() }
        }).collect();
        let _ = size(&readings, rank);
    }
}
