//! Real workers and engines behind one frontend, one of which dies.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tidegate::{Gate, LaneSnapshot};
use tidegate_gateway::engine::{Engine, EngineConfig};
use tidegate_gateway::frontend::hops::Ended;
use tidegate_gateway::worker::Worker;

use super::support::*;

/// Requests of one run.
const CLIENTS: usize = 48;

/// How a client saw its request end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saw {
    /// The whole stream, its end mark included.
    Whole,
    /// A stream that had begun and was cut.
    Cut,
    /// Another status.
    Status(u16),
    /// No answer at all.
    Nothing,
}

/// Sends one streaming request for rank 0, and reads its answer to the end.
async fn stream(url: String, http2: bool) -> Saw {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build_http::<Full<Bytes>>();
    let body = r#"{"model":"sim","stream":true,"max_tokens":40,"ignore_eos":true,"messages":[{"role":"user","content":"a"}]}"#;
    let request = Request::post(format!("{url}/v1/chat/completions"))
        .header("content-type", "application/json")
        .header("x-data-parallel-rank", "0")
        .body(Full::new(Bytes::from_static(body.as_bytes())))
        .unwrap();
    let Ok(mut answer) = client.request(request).await else {
        return Saw::Nothing;
    };
    if answer.status() != StatusCode::OK {
        return Saw::Status(answer.status().as_u16());
    }
    let mut text = String::new();
    while let Some(frame) = answer.frame().await {
        match frame {
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default();
                text.push_str(&String::from_utf8_lossy(&data));
            }
            Err(_) => return Saw::Cut,
        }
    }
    if text.contains("[DONE]") {
        Saw::Whole
    } else {
        Saw::Cut
    }
}

async fn engine() -> Engine {
    let config = EngineConfig {
        ranks: 2,
        speed: 2.0,
        ..EngineConfig::default()
    };
    Engine::start(config).await.unwrap()
}

fn total(gate: &Gate, count: impl Fn(&LaneSnapshot) -> u64) -> u64 {
    gate.snapshot().total(count)
}

/// Three workers: one killed with streams in flight, one refusing by rank, one well.
/// No request is lost that could be served, and the counts of frontend and workers
/// agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_can_be_served_is_served_while_a_worker_dies_and_another_refuses() {
    let engines = [engine().await, engine().await, engine().await];
    let start = |at: usize, running| -> Worker {
        let settings = limits(running, running, 0);
        worker(&engines[at].url(), settings, &[0, 1])
    };
    let (dies, refuses, well) = (start(0, 1000), start(1, 1), start(2, 1000));
    let gates = [&dies, &refuses, &well].map(|worker| worker.gate().clone());

    // Rank 0 of the second one is taken for good; rank 1 is free.
    let taken = post_of(
        r#"{"model":"sim","stream":true,"max_tokens":50000,"ignore_eos":true,"messages":[{"role":"user","content":"a"}]}"#,
        "x-data-parallel-rank: 0\r\n",
    );
    let mut other = Wire::connect(refuses.addr()).await;
    other.write(taken).await;
    assert_eq!(other.head().await, 200);

    let urls = [&dies, &refuses, &well].map(Worker::url);
    let front = Front::before(&urls, |_| {});
    front.well(3).await;
    let url = front.frontend.url();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let url = url.clone();
            tokio::spawn(async move {
                // A few at a time, so that some come before, at and after the death.
                tokio::time::sleep(Duration::from_millis(number as u64 * 5)).await;
                stream(url, number % 2 == 0).await
            })
        })
        .collect();
    until("streams are in flight at the one that dies", async || {
        let seen = gates[0].snapshot().worker;
        seen.running >= 5 && seen.running > seen.waiting
    })
    .await;
    drop(dies);

    let mut saw = Vec::new();
    for client in clients {
        // On a busy machine the engines take their time; a hang is longer.
        let end = tokio::time::timeout(Duration::from_secs(60), client).await;
        saw.push(end.expect("an end").unwrap());
    }
    let count = |what: Saw| saw.iter().filter(|&&saw| saw == what).count() as u64;
    let (whole, cut) = (count(Saw::Whole), count(Saw::Cut));
    assert_eq!(whole + cut, CLIENTS as u64, "{saw:?}");
    assert!(cut > 0 && whole > cut, "{saw:?}");

    // What the frontend counted of its requests is what its clients saw.
    let outcome = |outcome: &str| {
        format!(
            "dynamo_frontend_requests_total{{model=\"sim\",endpoint=\"chat_completions\",outcome=\"{outcome}\"}}"
        )
    };
    front.measures(&outcome("ok"), whole as f64).await;
    front.measures(&outcome("worker_error"), cut as f64).await;
    front
        .measures("dynamo_frontend_inflight_requests", 0.0)
        .await;

    // What it counted of its workers is what they counted themselves.
    let members = front.frontend.workers();
    let hops = |at: usize, ended: Ended| members[at].hops().of(ended);
    let sent = |at: usize| -> u64 {
        let all = Ended::ALL
            .into_iter()
            .map(|ended| hops(at, ended))
            .sum::<u64>();
        all - hops(at, Ended::Unreachable)
    };
    drop(other);
    for gate in &gates {
        holds(gate, 0, 0, 0).await;
    }
    // The stream that took the rank did not come by the frontend.
    assert_eq!(total(&gates[1], |lane| lane.received), sent(1) + 1);
    assert_eq!(
        total(&gates[1], |lane| lane.rejected_rank),
        hops(1, Ended::RefusedRank)
    );
    assert_eq!(sent(1), hops(1, Ended::RefusedRank));
    assert!(sent(1) > 0);
    assert_eq!(total(&gates[2], |lane| lane.received), sent(2));
    assert_eq!(total(&gates[2], |lane| lane.rejected()), 0);
    assert_eq!(sent(2), hops(2, Ended::Answered));
    // Those that were on their way to the one that died may not have reached its gate.
    let received = total(&gates[0], |lane| lane.received);
    let answered = hops(0, Ended::Answered);
    assert!(received <= sent(0), "{received} of {}", sent(0));
    assert!(received >= answered + cut, "{received}, {answered}, {cut}");
    assert_eq!(answered + hops(2, Ended::Answered), whole);
    // Every request was sent somewhere for each time that it was refused or failed.
    let broken = hops(0, Ended::Failed) - cut + hops(0, Ended::Unavailable);
    assert_eq!(
        sent(0) + sent(1) + sent(2),
        CLIENTS as u64 + hops(1, Ended::RefusedRank) + broken
    );
    for gate in &gates {
        for lane in gate.snapshot().lanes {
            assert!(lane.conserves(), "{lane:?}");
        }
    }
}

/// Two workers take turns at being down; clients that come one after the other notice
/// nothing.
#[tokio::test]
async fn a_rolling_restart_is_not_noticed() {
    let engine = engine().await;
    let mut workers = [0, 1].map(|_| Some(worker(&engine.url(), limits(50, 50, 0), &[0, 1])));
    let addrs = [0, 1].map(|at| workers[at].as_ref().map(Worker::addr).unwrap());
    let urls = [0, 1].map(|at| workers[at].as_ref().map(Worker::url).unwrap());
    let front = Front::before(&urls, |_| {});
    front.well(2).await;
    let url = front.frontend.url();
    for round in 0..4 {
        let at = round % 2;
        let streams: Vec<_> = (0..6)
            .map(|number| tokio::spawn(stream(url.clone(), number % 2 == 0)))
            .collect();
        if let Some(worker) = workers[at].take() {
            worker.shutdown().await;
        }
        for number in 0..4 {
            assert_eq!(stream(url.clone(), number % 2 == 0).await, Saw::Whole);
        }
        for stream in streams {
            let end = tokio::time::timeout(Duration::from_secs(60), stream).await;
            let saw = end.expect("an end").unwrap();
            assert_eq!(saw, Saw::Whole, "round {round}");
        }
        let mut config = tidegate_gateway::worker::WorkerConfig::new(engine.url().parse().unwrap());
        config.listen = addrs[at];
        config.settings = limits(50, 50, 0);
        workers[at] = Some(Worker::start(config).unwrap());
        front.well(2).await;
    }
    let rejected =
        "dynamo_frontend_model_rejection_total{model=\"sim\",endpoint=\"chat_completions\"}";
    assert_eq!(front.metric(rejected).await, Some(0.0));
}
