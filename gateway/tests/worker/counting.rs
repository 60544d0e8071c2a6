//! Which series there are, and that they are there before anything happens.

use std::collections::BTreeSet;

use tidegate_gateway::scrape::exposition::{Sample, read};
use tidegate_gateway::worker::Worker;

use super::support::*;

async fn samples(worker: &Worker) -> Vec<Sample> {
    let mut client = Wire::connect(worker.addr()).await;
    client
        .write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    assert_eq!(client.head().await, 200);
    let page = read(&String::from_utf8(client.body().await).unwrap());
    assert_eq!(page.passed_over, 0);
    page.samples
}

/// A series as the format writes it.
fn series(sample: &Sample) -> String {
    let labels = sample.labels.iter();
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{}{{{}}}", sample.name, labels.join(","))
}

/// Everything that a gate of these lanes is to show.
fn expected(lanes: &[&str]) -> BTreeSet<String> {
    let whole = [
        "engine_request_limit",
        "engine_request_waiting_limit",
        "request_queue_limit",
        "engine_reported",
        "engine_request_limit_is_fallback",
    ];
    let mut all: BTreeSet<String> = whole.map(|name| format!("{name}{{}}")).into();
    for lane in lanes {
        let rank = format!("dp_rank={lane}");
        for name in [
            "engine_request_count",
            "engine_request_waiting_count",
            "request_queue_count",
            "request_receive_total",
            "cancellation_total",
            "queue_wait_seconds_sum",
            "queue_wait_seconds_count",
        ] {
            all.insert(format!("{name}{{{rank}}}"));
        }
        for source in ["direct", "queue"] {
            all.insert(format!("request_admit_total{{{rank},source={source}}}"));
        }
        for scope in ["rank", "worker"] {
            all.insert(format!("rejection_total{{{rank},scope={scope}}}"));
        }
        for le in "0.001 0.0027 0.0074 0.02 0.055 0.15 0.4 1.1 3 8.2 22 60 +Inf".split(' ') {
            all.insert(format!("queue_wait_seconds_bucket{{{rank},le={le}}}"));
        }
    }
    all.iter()
        .map(|name| format!("dynamo_backend_admission_{name}"))
        .collect()
}

#[tokio::test]
async fn every_series_is_at_zero_from_the_start_and_there_is_no_other() {
    let engine = Engine::start().await;
    // Nobody has said anything yet.
    let worker = Worker::start(config(engine.addr)).unwrap();
    let found: BTreeSet<String> = samples(&worker).await.iter().map(series).collect();
    assert_eq!(found, expected(&["unspecified"]));
    drop(worker);

    let mut bench = Bench::with(limits(1, 1, 1), &[4, u32::MAX], |_| {}).await;
    let before = samples(&bench.worker).await;
    let found: BTreeSet<String> = before.iter().map(series).collect();
    assert_eq!(found, expected(&["unspecified", "4", "4294967295"]));
    for sample in before {
        let set = sample.name.ends_with("_limit") || sample.name.ends_with("_reported");
        assert_eq!(sample.value, if set { 1.0 } else { 0.0 }, "{sample:?}");
    }
    // What clients make up is no label, whatever becomes of the request.
    let first = bench.post_with("x-data-parallel-rank: 77\r\n").await;
    drop(bench.engine.call().await);
    drop(first);
    let mut wrong = bench.post_with("x-data-parallel-rank: no rank\r\n").await;
    assert_eq!(wrong.head().await, 400);
    bench.idle().await;
    let after: BTreeSet<String> = samples(&bench.worker).await.iter().map(series).collect();
    assert_eq!(after, expected(&["unspecified", "4", "4294967295"]));
}
