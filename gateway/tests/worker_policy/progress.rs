//! Clients that are told while their class holds them how far they are.

use serde_json::Value;
use tidegate_policy::file;

use super::asking::*;
use super::support::*;
use super::{Office, POLICY};

const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#"{"messages":[],"stream":true}"#;

async fn ask(client: &Client, class: &str, path: &str, body: &str) -> Asked {
    let headers = [("x-admission-progress", "1"), ("x-slo-class", class)];
    client.ask_with(path, &headers, body).await
}

#[tokio::test]
async fn a_held_client_is_told_its_position_and_then_gets_its_stream() {
    for http in Http::BOTH {
        let mut office = Office::start(limits(1, 1, 9)).await;
        let (streaming, _call) = office.bench.streaming().await;
        let client = http.client(office.bench.worker.addr()).await;
        let mut silver = ask(&client, "silver", CHAT, STREAM).await;
        assert_eq!(silver.status().await, 200);
        silver.until(": queued position=1\n").await;
        office.held("silver", 1).await;
        // One of a higher priority goes first.
        let mut gold = ask(&client, "gold", CHAT, STREAM).await;
        assert_eq!(gold.status().await, 200);
        gold.until(": queued position=1\n").await;
        silver.until(": queued position=2\n").await;
        office.bench.holds(1, 0, 0).await;
        drop(streaming);
        for asked in [&mut gold, &mut silver] {
            let mut call = office.bench.engine.call().await;
            assert_eq!(call.body().await, STREAM.as_bytes());
            call.write(EVENTS).await;
            call.write(token()).await;
            call.write(LAST).await;
            let (body, whole) = asked.whole().await;
            assert!(whole && body.contains("content"), "{body}");
        }
        office.bench.idle().await;
        office.until("policy_inside_count", "", 0.0).await;
    }
}

#[tokio::test]
async fn a_timeout_of_a_client_that_is_told_is_an_event() {
    let mut office = Office::start(limits(1, 1, 9)).await;
    let _running = office.bench.streaming().await;
    let client = Http::One.client(office.bench.worker.addr()).await;
    let mut bronze = ask(&client, "bronze", CHAT, STREAM).await;
    assert_eq!(bronze.status().await, 200);
    let (body, whole) = bronze.whole().await;
    let (news, error) = body.split_once("event: error\ndata: ").unwrap();
    assert!(whole && news.starts_with(": queued position=1"), "{body}");
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!(error["error"]["type"], "Overloaded");
    assert_eq!(error["details"]["reason"], "queue_timeout");
    office.held("bronze", 0).await;
    // One that does not stream is answered as ever, and so is one that leaves.
    let mut whole = ask(&client, "bronze", CHAT, "{}").await;
    assert_eq!(whole.status().await, 529);
    let mut leaves = ask(&client, "gold", "/generate_stream", "{}").await;
    assert_eq!(leaves.status().await, 200);
    office.held("gold", 1).await;
    drop(leaves);
    office.held("gold", 0).await;
    assert_eq!(office.decided("gold", "left", "").await, Some(1.0));
}

#[tokio::test]
async fn one_that_is_handed_to_the_gate_hears_on_and_leaves_when_its_class_says() {
    let text = POLICY
        .replace("stale_after_ms = 500", "stale_after_ms = 100")
        .replace("queue_timeout_ms = 50\n", "queue_timeout_ms = 3000\n");
    let mut office = Office::with(limits(1, 1, 9), |_, policy| {
        policy.settings = file::parse(&text).unwrap();
    })
    .await;
    let (streaming, _call) = office.bench.streaming().await;
    let client = Http::One.client(office.bench.worker.addr()).await;
    let mut told = ask(&client, "bronze", CHAT, STREAM).await;
    assert_eq!(told.status().await, 200);
    told.until(": queued position=1").await;
    let mut bronze = office.post("bronze").await;
    office.held("bronze", 2).await;
    let mut silver = office.post("silver").await;
    office.held("silver", 1).await;
    office.page.fails();
    office.bench.holds(1, 0, 3).await;
    // This one was never held: its class has no say at the gate.
    let mut late = office.post("bronze").await;
    office.bench.holds(1, 0, 4).await;
    let details = super::refused(&mut bronze).await;
    assert_eq!(details["reason"], "queue_timeout");
    assert_eq!(details["class"], "bronze");
    let (body, _) = told.whole().await;
    assert!(body.contains("queue_timeout"), "{body}");
    office.bench.holds(1, 0, 2).await;
    assert!(late.is_silent().await);
    drop(streaming);
    for client in [&mut silver, &mut late] {
        office.bench.engine.answer(JSON).await;
        assert_eq!(client.head().await, 200);
        client.body().await;
    }
    office.bench.idle().await;
    office.until("policy_inside_count", "", 0.0).await;
}
