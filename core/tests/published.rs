//! The gate's metrics, as a recorder sees them.

mod common;

use std::collections::BTreeMap;

use common::*;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tidegate::Gate;
use tidegate::metrics::PREFIX;

/// Every series with its value: `name{label=value,...}`, prefix taken off.
fn published(gate: &Gate) -> BTreeMap<String, u64> {
    gate.settle();
    let recorder = DebuggingRecorder::new();
    gate.publish(&recorder, PREFIX);
    let series = recorder.snapshotter().snapshot().into_vec();
    series
        .into_iter()
        .map(|(key, _unit, description, value)| {
            let (_, key) = key.into_parts();
            assert!(description.is_some(), "{key} is not described");
            let name = key.name().strip_prefix(PREFIX).expect("has the prefix");
            let labels: Vec<_> = key
                .labels()
                .map(|label| format!("{}={}", label.key(), label.value()))
                .collect();
            let value = match value {
                DebugValue::Counter(count) => count,
                DebugValue::Gauge(value) => {
                    assert!(value.0 >= 0.0 && value.0.fract() == 0.0, "{key}: {value}");
                    value.0 as u64
                }
                DebugValue::Histogram(samples) => samples.len() as u64,
            };
            (format!("{name}{{{}}}", labels.join(",")), value)
        })
        .collect()
}

/// The per-lane series of A7, for one lane.
fn series_of(lane: &str) -> Vec<String> {
    [
        "engine_request_count{dp_rank=?}",
        "engine_request_waiting_count{dp_rank=?}",
        "request_queue_count{dp_rank=?}",
        "request_receive_total{dp_rank=?}",
        "request_admit_total{dp_rank=?,source=direct}",
        "request_admit_total{dp_rank=?,source=queue}",
        "rejection_total{dp_rank=?,scope=rank}",
        "rejection_total{dp_rank=?,scope=worker}",
        "cancellation_total{dp_rank=?}",
    ]
    .map(|series| series.replace('?', lane))
    .into()
}

#[test]
fn every_series_is_there_at_0_from_the_start() {
    let gate = ranked(3, 2, 1, [0, 4]);
    let seen = published(&gate);
    for lane in ["unspecified", "0", "4"] {
        for series in series_of(lane) {
            assert_eq!(seen.get(&series), Some(&0), "{series} of {seen:#?}");
        }
    }
}

#[test]
fn the_limits_in_force_are_told_per_rank() {
    let gate = ranked(3, 2, 1, [0, 4]);
    let limits = |gate: &Gate| {
        let seen = published(gate);
        [
            seen["engine_request_limit{}"],
            seen["engine_request_waiting_limit{}"],
            seen["request_queue_limit{}"],
        ]
    };
    assert_eq!(limits(&gate), [3, 2, 1]);
    gate.set_limits(settings(7, 6, 5)).unwrap();
    assert_eq!(limits(&gate), [7, 6, 5]);
}

#[test]
fn labels_come_from_lanes_and_never_from_clients() {
    let gate = ranked(2, 2, 0, [4]);
    drop(gate.try_admit(Some(4)));
    drop(gate.try_admit(Some(123_456)));
    gate.cancelled_on_arrival(Some(654_321));
    let lanes: std::collections::BTreeSet<_> = published(&gate)
        .into_keys()
        .filter_map(|series| Some(series.split_once("dp_rank=")?.1.to_owned()))
        .map(|rest| rest.split([',', '}']).next().unwrap().to_owned())
        .collect();
    assert_eq!(lanes, ["4", "unspecified"].map(String::from).into());
}

#[test]
fn each_request_counts_under_one_lane_and_by_what_became_of_it() {
    let gate = ranked(1, 1, 1, [4, 5]);
    let mut direct = enter(&gate, Some(4));
    direct.first_token();
    let ticket = queue(&gate, Some(4));
    assert!(gate.request(Some(4)).is_err());
    let seen = published(&gate);
    assert_eq!(seen["engine_request_count{dp_rank=4}"], 1);
    assert_eq!(seen["engine_request_waiting_count{dp_rank=4}"], 0);
    assert_eq!(seen["request_queue_count{dp_rank=4}"], 1);
    drop(direct);
    drop(take(&gate, ticket));
    gate.cancelled_on_arrival(Some(4));
    let seen = published(&gate);
    assert_eq!(seen["request_receive_total{dp_rank=4}"], 4);
    assert_eq!(seen["request_admit_total{dp_rank=4,source=direct}"], 1);
    assert_eq!(seen["request_admit_total{dp_rank=4,source=queue}"], 1);
    assert_eq!(seen["rejection_total{dp_rank=4,scope=rank}"], 1);
    assert_eq!(seen["rejection_total{dp_rank=4,scope=worker}"], 0);
    assert_eq!(seen["cancellation_total{dp_rank=4}"], 1);
    for series in series_of("5").into_iter().chain(series_of("unspecified")) {
        assert_eq!(seen[&series], 0, "{series}");
    }
}

#[test]
fn publishing_again_steps_nothing() {
    let gate = ranked(1, 1, 1, [4]);
    let permit = enter(&gate, Some(4));
    assert_eq!(published(&gate), published(&gate));
    let recorder = DebuggingRecorder::new();
    gate.publish(&recorder, "mine_");
    gate.publish(&recorder, "mine_");
    let total: u64 = recorder
        .snapshotter()
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| key.key().name() == "mine_request_receive_total")
        .map(|(.., value)| match value {
            DebugValue::Counter(count) => count,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(total, 1);
    drop(permit);
}
