//! Who goes in, who is held, and who is refused.

use std::time::Duration;

use tidegate_gateway::worker::Trust;

use super::support::*;
use super::{Office, refused};

#[tokio::test]
async fn requests_wait_in_their_class_and_the_gates_queue_stays_empty() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let first = office.bench.streaming().await;
    let mut silver = office.post("silver").await;
    office.held("silver", 1).await;
    let mut gold = office.post("gold").await;
    office.held("gold", 1).await;
    office.bench.holds(1, 0, 0).await;
    assert!(office.bench.engine.is_idle());

    let (_client, mut call) = first;
    call.write(chunk("data: [DONE]\n\n")).await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(gold.head().await, 200, "the higher priority goes first");
    office.bench.engine.answer(JSON).await;
    assert_eq!(silver.head().await, 200);
    for class in ["gold", "silver"] {
        office.held(class, 0).await;
    }
    office.bench.idle().await;
    office.until("policy_inside_count", "", 0.0).await;
    assert_eq!(office.decided("gold", "admitted", "").await, Some(1.0));
    assert_eq!(
        office.decided("silver", "held", "concurrency_limit").await,
        Some(1.0)
    );
    assert_eq!(office.bench.total(|lane| lane.admitted_queue), 0);
}

#[tokio::test]
async fn a_timeout_is_a_refusal_of_the_class() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let _running = office.bench.streaming().await;
    let mut bronze = office.post("bronze").await;
    let details = refused(&mut bronze).await;
    assert_eq!(details["reason"], "queue_timeout");
    assert_eq!(details["class"], "bronze");
    assert_eq!(details["retryable"], true);
    assert!(bronze.header("retry-after").is_some());
    let mut edge = office.post("edge").await;
    assert_eq!(refused(&mut edge).await["reason"], "concurrency_limit");
    office.bench.holds(1, 0, 0).await;
    assert_eq!(
        office.bench.total(|lane| lane.received),
        1,
        "the gate never saw them"
    );
}

#[tokio::test]
async fn who_leaves_while_held_is_forgotten() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let (_client, mut call) = office.bench.streaming().await;
    let leaver = office.post("gold").await;
    office.held("gold", 1).await;
    let mut stays = office.post("silver").await;
    office.held("silver", 1).await;
    drop(leaver);
    office.held("gold", 0).await;
    assert_eq!(office.decided("gold", "left", "").await, Some(1.0));
    call.write(chunk("data: [DONE]\n\n")).await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(stays.head().await, 200);
    stays.body().await;
    office.bench.idle().await;
}

#[tokio::test]
async fn a_client_that_leaves_mid_stream_makes_room_for_the_next() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let (client, _call) = office.bench.streaming().await;
    let mut held = office.post("silver").await;
    office.held("silver", 1).await;
    drop(client);
    office.bench.engine.answer(JSON).await;
    assert_eq!(held.head().await, 200);
    held.body().await;
    office.bench.idle().await;
    office.until("policy_inside_count", "", 0.0).await;
}

#[tokio::test]
async fn an_api_key_comes_before_a_header_which_only_the_trusted_may_send() {
    let mut office = Office::with(limits(1, 1, 9), |config, _| config.trust = Trust::None).await;
    let _running = office.bench.streaming().await;
    let claims = "x-slo-class: edge\r\n";
    let _default = office.bench.post_with(claims).await;
    office.held("silver", 1).await;
    let key = "authorization: Bearer sk-gold\r\n";
    let _gold = office.bench.post_with(&format!("{claims}{key}")).await;
    office.held("gold", 1).await;
    let _gold = office.bench.post_with("x-api-key: sk-gold\r\n").await;
    office.held("gold", 2).await;
}

#[tokio::test]
async fn memory_is_judged_before_the_gate_is_asked() {
    let mut office = Office::start(limits(9, 9, 9)).await;
    let prompt = "x".repeat(4 * 20_000);
    let body = format!("{{\"prompt\":\"{prompt}\"}}");
    let mut client = office.bench.connect().await;
    client
        .write(format!(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    let details = refused(&mut client).await;
    assert_eq!(details["reason"], "too_large");
    assert_eq!(details["retryable"], false);
    assert!(client.header("retry-after").is_none());

    // As large, and no sequence of it is too long: a batch, a tensor, a sound.
    let rows = vec!["x".repeat(4_000); 20];
    let numbers = vec![1; 20_000];
    for body in [
        serde_json::json!({ "prompt": rows }),
        serde_json::json!({ "inputs": [{ "shape": [20_000], "datatype": "INT8", "data": numbers }] }),
        serde_json::json!({ "messages": [{ "content": [{ "input_audio": { "data": prompt } }] }] }),
    ] {
        let body = body.to_string();
        let mut client = office.bench.connect().await;
        client
            .write(format!(
                "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
        office.bench.engine.answer(JSON).await;
        assert_eq!(client.head().await, 200, "{}", &body[..40]);
        client.body().await;
    }

    office.page.says(0.9);
    office.until("policy_gpu_share", "of=memory", 0.9).await;
    let mut silver = office.post("silver").await;
    assert_eq!(refused(&mut silver).await["reason"], "noncritical_shed");
    let mut gold = office.post("gold").await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(gold.head().await, 200, "a critical class still goes in");
}

/// The policy reads a body before it decides; only what has come takes room.
#[tokio::test]
async fn a_client_that_announces_much_and_sends_a_byte_holds_nobody_up() {
    let mut office = Office::with(limits(9, 9, 9), |config, _| {
        config.buffer_budget = 1_000_000;
    })
    .await;
    let mut announcer = office.bench.connect().await;
    announcer
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{")
        .await;
    let mut gold = office.post("gold").await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(gold.head().await, 200);
    assert!(announcer.is_silent().await);
}

#[tokio::test]
async fn held_requests_are_told_when_the_worker_stops() {
    let mut office = Office::with(limits(1, 1, 9), |config, _| {
        config.drain_timeout = Duration::from_millis(100);
    })
    .await;
    let _running = office.bench.streaming().await;
    let mut held = office.post("gold").await;
    office.held("gold", 1).await;
    let stopping = tokio::spawn(office.bench.worker.shutdown());
    assert_eq!(held.head().await, 503);
    soon("the worker stops", stopping).await.unwrap();
}

/// The policy decides by the body, which has to be here for that.
#[tokio::test]
async fn leave_to_send_a_body_comes_before_admission() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let _running = office.bench.streaming().await;
    let mut client = office.bench.connect().await;
    client
        .write(
            "POST /generate HTTP/1.1\r\nhost: x\r\nx-slo-class: edge\r\n\
             expect: 100-continue\r\ncontent-length: 2\r\n\r\n",
        )
        .await;
    assert_eq!(client.head().await, 100);
    client.write("{}").await;
    assert_eq!(refused(&mut client).await["reason"], "concurrency_limit");
}

/// Who is held goes before it, as who is in the gate's queue does without a policy.
#[tokio::test]
async fn who_is_refused_may_come_again_when_those_are_done_that_are_held() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let mut first = office.post("gold").await;
    office.bench.engine.answer(JSON).await;
    assert_eq!(first.head().await, 200);
    let _running = office.bench.streaming().await;
    let mut held = Vec::new();
    for count in 1..=4 {
        held.push(office.post("silver").await);
        office.held("silver", count).await;
    }
    // One has finished in a second or more: five take five seconds or more.
    soon("five are waited for", async {
        let mut told = 0;
        while told < 5 {
            let mut edge = office.post("edge").await;
            refused(&mut edge).await;
            told = edge.header("retry-after").unwrap().parse().unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}
