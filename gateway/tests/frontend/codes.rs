//! 503 where nobody is there, the overload status where somebody is and has too much
//! to do, never mixed up, on every path.
//!
//! The overload status is 555 here (CASES 30), so that nothing gets there by chance.

use std::time::Duration;

use http::StatusCode;
use tidegate_gateway::frontend::FrontendConfig;
use tidegate_gateway::frontend::hops::Ended;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_gateway::worker::Worker;

use super::support::*;

/// A page of an engine that uses this many of its 100 blocks.
pub fn used(blocks: u32) -> String {
    format!(
        "vllm:cache_config_info{{num_gpu_blocks=\"100\"}} 1\nvllm:kv_cache_usage_perc {}\n",
        f64::from(blocks) / 100.0
    )
}

/// Times that no test outlasts.
const NEVER: Duration = Duration::from_secs(3600);

fn coded(config: &mut FrontendConfig) {
    config.overload_status = StatusCode::from_u16(555).unwrap();
    config.mark_time = NEVER;
    config.monitor.thresholds.active_decode_blocks = Some(0.9);
}

fn unchecked(config: &mut FrontendConfig) {
    coded(config);
    config.health_interval = NEVER;
}

/// A call that streams and one that does not.
const BODIES: [&str; 2] = [r#"{"model":"m","stream":true}"#, r#"{"model":"m"}"#];

/// A request of each kind, one after the other.
async fn each(front: &Front, mut check: impl AsyncFnMut(Wire)) {
    for body in BODIES {
        let headers = "accept: text/event-stream\r\n";
        check(front.send(post_of(body, headers)).await).await;
    }
}

/// Waits until the first worker is busy.
async fn busy(front: &Front) {
    until("the first worker is busy", async || {
        let member = front.frontend.monitor().member(0).unwrap();
        member.busy("m").worker
    })
    .await;
}

fn saying(blocks: u32) -> Pages {
    Pages {
        metrics: Some(used(blocks)),
        ..Pages::default()
    }
}

/// A worker whose one slot is taken by a stream that goes on; `queue` requests wait.
async fn full(engine: &mut Scripted, queue: u32) -> (Worker, Vec<Wire>) {
    let worker = worker(&engine.url(), limits(1, 1, queue), &[0]);
    let mut held = occupied(engine, &worker).await;
    for _ in 0..queue {
        let mut queued = Wire::connect(worker.addr()).await;
        queued.write(post("")).await;
        held.push(queued);
    }
    holds(worker.gate(), 1, 0, queue.into()).await;
    (worker, held)
}

/// The stream that takes a worker's one slot.
async fn occupied(engine: &mut Scripted, worker: &Worker) -> Vec<Wire> {
    let mut streaming = Wire::connect(worker.addr()).await;
    streaming.write(post("")).await;
    let mut call = engine.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(streaming.head().await, 200);
    vec![streaming, call]
}

#[tokio::test]
async fn nobody_is_unavailable() {
    let front = Front::before(&[], coded);
    each(&front, async |mut client| {
        assert_unavailable(&mut client).await;
    })
    .await;
}

#[tokio::test]
async fn nobody_well_is_unavailable() {
    let workers = [Scripted::start().await, Scripted::start().await];
    let front = Front::with(&[&workers[0], &workers[1]], coded).await;
    workers[0].kill();
    workers[1].set(|pages| pages.ready = 503);
    front.well(0).await;
    each(&front, async |mut client| {
        assert_unavailable(&mut client).await;
    })
    .await;
}

#[tokio::test]
async fn found_dead_by_the_request_itself_is_unavailable() {
    let worker = Scripted::start().await;
    let front = Front::with(&[&worker], unchecked).await;
    worker.kill();
    each(&front, async |mut client| {
        assert_unavailable(&mut client).await;
    })
    .await;
}

#[tokio::test]
async fn the_busy_set_is_overload() {
    let worker = Scripted::with(saying(91)).await;
    let front = Front::with(&[&worker], coded).await;
    busy(&front).await;
    each(&front, async |mut client| {
        let body = assert_overloaded(&mut client, 555).await;
        assert_eq!(body["details"]["busy"], 1);
    })
    .await;
}

#[tokio::test]
async fn one_busy_and_one_unwell_is_overload() {
    let full = Scripted::with(saying(91)).await;
    let gone = Scripted::start().await;
    let front = Front::with(&[&full, &gone], coded).await;
    busy(&front).await;
    gone.kill();
    front.well(1).await;
    each(&front, async |mut client| {
        let body = assert_overloaded(&mut client, 555).await;
        assert_eq!(body["details"]["unhealthy"], 1);
    })
    .await;
}

#[tokio::test]
async fn one_busy_and_one_that_fails_is_overload() {
    // Dead when it is asked, dead before it answers, and answering that it cannot.
    for failure in 0..3 {
        let full = Scripted::with(saying(91)).await;
        let mut fails = Scripted::start().await;
        let front = Front::with(&[&full, &fails], unchecked).await;
        busy(&front).await;
        if failure == 0 {
            fails.kill();
        }
        let mut client = front.post().await;
        match failure {
            0 => {}
            1 => {
                // A kept connection may have been too old, so that it is asked again.
                drop(fails.call().await);
                drop(fails.call().await);
            }
            _ => {
                let said = "HTTP/1.1 503 x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                fails.answer(said).await;
            }
        }
        assert_overloaded(&mut client, 555).await;
    }
}

#[tokio::test]
async fn a_full_gate_is_overload_with_and_without_a_queue() {
    for queue in [0, 1, 2] {
        let mut engine = Scripted::start().await;
        let (worker, held) = full(&mut engine, queue).await;
        // The worker's own status is 529. Each refusal counts here, and no mark.
        let front = Front::before(&[worker.url()], |config| {
            coded(config);
            config.mark_time = Duration::ZERO;
            config.monitor.scrape_interval = None;
        });
        front.well(1).await;
        each(&front, async |mut client| {
            let body = assert_overloaded(&mut client, 555).await;
            assert_eq!(body["details"]["worker"]["queued"], queue);
        })
        .await;
        let refused = worker.gate().snapshot().total(|lane| lane.rejected());
        assert_eq!(refused, 2);
        drop(held);
    }
}

/// A policy that holds nobody: its refusals are the class's, and mark no worker.
const POLICY: &str = r#"
default_class = "edge"
utilisation_target = 1.0
[state]
sample_interval_ms = 10
[cold_start]
idle_ms = 3600000
[[class]]
name = "edge"
first_token_ms = 600000
queue_timeout_ms = 0
"#;

#[tokio::test]
async fn a_policy_that_refuses_is_overload_and_its_worker_is_asked_again() {
    let mut engine = Scripted::with(Pages {
        metrics: Some(
            "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n\
             vllm:kv_cache_usage_perc 0.1\n\
             vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1\n"
                .to_owned(),
        ),
        ..Pages::default()
    })
    .await;
    let mut policy = PolicyConfig::new(tidegate_policy::file::parse(POLICY).unwrap());
    policy.engine_metrics = Some(format!("{}/metrics", engine.url()).parse().unwrap());
    let worker = worker_with(&engine.url(), limits(1, 1, 9), &[0], |config| {
        config.policy = Some(policy);
    });
    until("the policy knows the engine", async || {
        let (_, page) = get(worker.addr(), "/metrics").await;
        value(&page, "dynamo_backend_admission_policy_state_fresh") == Some(1.0)
    })
    .await;
    let _held = occupied(&mut engine, &worker).await;
    let front = Front::before(&[worker.url()], coded);
    front.well(1).await;
    each(&front, async |mut client| {
        let body = assert_overloaded(&mut client, 555).await;
        assert_eq!(body["details"]["worker"]["class"], "edge", "{body}");
    })
    .await;
    let members = front.frontend.workers();
    assert_eq!(members[0].hops().of(Ended::RefusedClass), 2);
}

#[tokio::test]
async fn two_full_gates_are_overload_after_a_retry_and_by_their_marks() {
    let (mut one, mut other) = (Scripted::start().await, Scripted::start().await);
    let (first, _held) = full(&mut one, 0).await;
    let (second, _held) = full(&mut other, 0).await;
    let front = Front::before(&[first.url(), second.url()], coded);
    front.well(2).await;
    for _ in 0..2 {
        each(&front, async |mut client| {
            assert_overloaded(&mut client, 555).await;
        })
        .await;
    }
    for worker in [&first, &second] {
        assert_eq!(worker.gate().snapshot().total(|lane| lane.rejected()), 1);
    }
}

#[tokio::test]
async fn a_refusal_and_a_failure_are_overload_in_either_order() {
    for refuses_first in [true, false] {
        let mut workers = [Scripted::start().await, Scripted::start().await];
        let front = Front::with(&[&workers[0], &workers[1]], coded).await;
        let [one, other] = &mut workers;
        let mut client = front.post().await;
        let mut said = [refusal("worker", ""), "no http\r\n\r\n".to_owned()];
        if !refuses_first {
            said.reverse();
        }
        one.answer(&said[0]).await;
        other.answer(&said[1]).await;
        assert_overloaded(&mut client, 555).await;
    }
}

#[tokio::test]
async fn an_engine_that_dies_behind_its_gate_is_no_overload() {
    let engine = Scripted::start().await;
    let worker = worker(&engine.url(), limits(1, 1, 0), &[0]);
    let front = Front::before(&[worker.url()], unchecked);
    front.well(1).await;
    engine.kill();
    each(&front, async |mut client| {
        let (status, body) = answer(&mut client).await;
        assert_eq!((status, body["type"].as_str()), (502, Some("Bad Gateway")));
    })
    .await;
}

#[tokio::test]
async fn an_overload_status_of_503_is_still_told_from_nobody_being_there() {
    let worker = Scripted::with(saying(91)).await;
    let front = Front::with(&[&worker], |config| {
        coded(config);
        config.overload_status = StatusCode::SERVICE_UNAVAILABLE;
        config.retry_after = false;
    })
    .await;
    busy(&front).await;
    let mut client = front.post().await;
    assert_overloaded(&mut client, 503).await;
    assert_eq!(client.header("retry-after"), None);
    worker.kill();
    front.well(0).await;
    let mut client = front.post().await;
    assert_unavailable(&mut client).await;
}

/// After the first byte there is no status to give: the stream is cut, and nothing is
/// put into it.
#[tokio::test]
async fn a_stream_that_has_begun_ends_without_a_word() {
    let mut engine = Scripted::start().await;
    let worker = worker(&engine.url(), limits(1, 1, 0), &[0]);
    let front = Front::before(&[worker.url()], coded);
    front.well(1).await;
    let mut client = front.send(post_of(BODIES[0], "")).await;
    let mut call = engine.call().await;
    call.body().await;
    call.write(EVENTS).await;
    call.write(token()).await;
    assert_eq!(client.head().await, 200);
    client.expect(token()).await;
    drop(call);
    client.closed().await;
    assert!(client.has_nothing_left());
}
