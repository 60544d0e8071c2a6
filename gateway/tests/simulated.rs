//! The worker before the simulated engine: what breaks other gateways, with an
//! engine that really batches, caches and fails.

mod caller;
mod stack;

use std::time::Duration;

use caller::{Caller, ENDLESS, End, chat};
use clap::ValueEnum;
use http::StatusCode;
use serde_json::{Value, json};
use stack::{Stack, limits, simulated, soon};
use tidegate::Lane;
use tidegate_gateway::engine::{EngineConfig, Misbehave};
use tokio::time::Instant;

/// How a client sees the engine fail: the status and the end of the body, on a
/// call that streams and on one that does not.
fn expected(kind: Misbehave) -> [(u16, End); 2] {
    use Misbehave::*;
    match kind {
        NeverAnswer => [(504, End::Whole); 2],
        Reset => [(502, End::Whole); 2],
        Stall | StallMid | ResetMid => [(200, End::Cut); 2],
        Truncated | EmptyStream | RoleOnly | BadJson => [(200, End::Whole); 2],
        ErrorEvent => [(200, End::Whole), (500, End::Whole)],
        Http400 => [(400, End::Whole); 2],
        Http500 => [(500, End::Whole); 2],
    }
}

#[tokio::test]
async fn whatever_the_engine_does_the_slot_comes_back_and_it_is_no_overload() {
    for &kind in Misbehave::value_variants() {
        let silent = [
            Misbehave::NeverAnswer,
            Misbehave::Stall,
            Misbehave::StallMid,
        ]
        .contains(&kind);
        let stack = Stack::start(simulated(1, 8, 100.0), |config| {
            config.settings = limits(1, 1, 0);
            config.engine_idle_timeout = silent.then_some(Duration::from_millis(500));
        })
        .await;
        let name = kind.to_possible_value().expect("a name");
        let headers = [("x-sim-misbehave", name.get_name())];
        for (streams, expected) in [true, false].into_iter().zip(expected(kind)) {
            let what = format!("{kind:?}, streaming: {streams}");
            let answer = Caller::new(&stack).send(&headers, chat(streams, 6)).await;
            let scope = answer.headers().get("x-admission-scope").cloned();
            let status = answer.status().as_u16();
            let (text, end) = caller::read(answer).await;
            assert_eq!((status, end), expected, "{what}: {text}");
            assert_eq!(scope, None, "{what}");
            stack.holds(0, 0, 0).await;
            stack.engine_holds(0).await;
        }
        assert_eq!(stack.snapshot().total(|lane| lane.admitted_direct), 2);
        assert_eq!(stack.snapshot().total(|lane| lane.rejected()), 0);
        stack.idle().await;
    }
}

#[tokio::test]
async fn an_engine_that_is_shut_down_mid_stream_frees_its_slots() {
    let stack = Stack::small(2, 2, 1).await;
    let caller = Caller::new(&stack);
    let streaming = caller.stream().await;
    let whole = tokio::spawn(caller.clone().send_owned(chat(false, ENDLESS)));
    stack.holds(2, 1, 0).await;
    let queued = tokio::spawn(caller.clone().send_owned(chat(true, ENDLESS)));
    stack.holds(2, 1, 1).await;
    stack.engine_holds(2).await;
    let Stack { engine, worker } = stack;
    engine.shutdown().await;

    let (_, end) = caller::read(streaming).await;
    assert_eq!(end, End::Cut);
    for answer in [whole, queued] {
        // Ours, or the engine's own that it is stopping.
        let answer = soon("an answer", answer).await.expect("no panic");
        assert!([502, 503].contains(&answer.status().as_u16()), "{answer:?}");
        assert!(!answer.headers().contains_key("x-admission-scope"));
    }
    let again = caller.send(&[], chat(true, 1)).await;
    assert_eq!(again.status(), StatusCode::BAD_GATEWAY);
    let start = Instant::now();
    while worker.gate().snapshot().worker != tidegate::Counts::default() {
        assert!(start.elapsed() < stack::LONG, "{:?}", worker.gate());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_stream_cut_after_two_chunks_lets_the_next_one_in() {
    let stack = Stack::small(1, 1, 0).await;
    let caller = Caller::new(&stack);
    for _ in 0..10 {
        let mut stream = caller.stream().await;
        let second = caller::next(&mut stream).await;
        assert!(second.contains("\"content\""), "{second}");
        stack.holds(1, 0, 0).await;
        drop(stream);
        // In a moment there is room; until then the answer is the honest one.
        soon("room", async {
            loop {
                let answer = caller.send(&[], chat(true, 1)).await;
                let status = answer.status().as_u16();
                let (text, end) = caller::read(answer).await;
                assert_eq!(end, End::Whole);
                match status {
                    200 => return assert!(text.contains("[DONE]"), "{text}"),
                    529 => {}
                    _ => panic!("{status}: {text}"),
                }
            }
        })
        .await;
        stack.holds(0, 0, 0).await;
    }
    let (received, finished, cancelled) = stack.engine_settled().await;
    assert_eq!((received, finished, cancelled), (20, 10, 10));
    stack.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_during_the_generation_of_a_whole_answer_frees_everything() {
    let stack = Stack::small(1, 1, 1).await;
    let caller = Caller::new(&stack);
    for round in 1..=10 {
        let whole = tokio::spawn(caller.clone().send_owned(chat(false, ENDLESS)));
        // No byte of it comes before all of it does, so it waits to the end.
        stack.holds(1, 1, 0).await;
        stack.engine_holds(1).await;
        let queued = tokio::spawn(caller.clone().send_owned(chat(false, 1)));
        stack.holds(1, 1, 1).await;
        whole.abort();
        let answer = soon("the one behind it", queued).await.expect("no panic");
        assert_eq!(answer.status(), 200);
        stack.holds(0, 0, 0).await;
        let engine = stack.engine_settled().await;
        assert_eq!(engine, (2 * round, round, round));
    }
    assert_eq!(stack.snapshot().total(|lane| lane.cancelled), 0);
    stack.idle().await;
}

#[tokio::test]
async fn connections_that_have_been_used_and_are_kept_hold_nothing() {
    let stack = Stack::start(simulated(1, 8, 1000.0), |config| {
        config.settings = limits(1, 1, 0);
    })
    .await;
    let mut kept = Vec::new();
    for n in 0..1000 {
        let mut connection = caller::connect(&stack).await;
        let (answer, end) = connection.send(chat(n % 2 == 0, 1)).await;
        assert_eq!((answer, end), (StatusCode::OK, End::Whole));
        kept.push(connection);
        stack.holds(0, 0, 0).await;
    }
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_direct), 1000);
    stack.idle().await;
    // They are connections still.
    for connection in kept.iter_mut().step_by(100) {
        let (answer, end) = connection.send(chat(true, 1)).await;
        assert_eq!((answer, end), (StatusCode::OK, End::Whole));
        stack.holds(0, 0, 0).await;
    }
    stack.idle().await;
}

#[tokio::test]
async fn a_streaming_call_that_is_refused_gets_a_status_and_json() {
    let stack = Stack::small(1, 1, 0).await;
    let caller = Caller::new(&stack);
    let stream = caller.stream().await;
    stack.holds(1, 0, 0).await;
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let body = json!({"stream": true, "prompt": "x", "messages": []});
        let headers = [("accept", "text/event-stream")];
        let answer = caller.send_to(path, &headers, body).await;
        assert_eq!(answer.status().as_u16(), 529);
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert!(answer.headers().contains_key("content-length"));
        let (text, end) = caller::read(answer).await;
        assert_eq!(end, End::Whole);
        let body: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(body["type"], "Overloaded");
        assert_eq!(body["code"], 529);
    }
    assert_eq!(stack.snapshot().total(|lane| lane.rejected_worker), 2);
    drop(stream);
    stack.idle().await;
    // The stream and the last one: the refused ones cost the engine nothing.
    assert_eq!(stack.engine_settled().await.0, 2);
}

#[tokio::test]
async fn the_engine_tells_the_worker_its_ranks_and_its_size() {
    let engine = EngineConfig {
        first_rank: 4,
        // It has nothing to tell while it loads, and is asked again.
        startup_delay: Duration::from_millis(300),
        ..simulated(2, 3, 100.0)
    };
    let stack = Stack::start(engine, |_| {}).await;
    let seen = stack.snapshot();
    let lanes: Vec<Lane> = seen.lanes.iter().map(|lane| lane.lane).collect();
    assert_eq!(lanes, [Lane::Unspecified, Lane::Rank(4), Lane::Rank(5)]);
    assert_eq!(seen.limits.engine_request_limit, 3);
    assert_eq!(seen.limits.engine_request_waiting_limit, 3);
    assert_eq!(seen.limits.request_queue_limit, 6);
    let headers = [("x-data-parallel-rank", "5")];
    let answer = Caller::new(&stack).send(&headers, chat(true, 1)).await;
    assert_eq!(answer.status(), 200);
    let rank = stack.snapshot().lane(Lane::Rank(5)).copied();
    assert_eq!(rank.expect("a lane").admitted_direct, 1);
    stack.engine_settled().await;
    assert_eq!(stack.engine.stats()[1].received, 1);
    stack.idle().await;
}
