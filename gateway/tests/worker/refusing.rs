//! What a refused client sees.

use serde_json::Value;
use tidegate_gateway::worker::refusal::parse_status;

use super::support::*;

async fn refusal(client: &mut Wire) -> Value {
    let body = client.body().await;
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn a_full_worker_says_so_in_json_even_to_a_streaming_call() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, call) = bench.streaming().await;
    let queued = bench.post().await;
    bench.holds(1, 0, 1).await;

    let mut client = bench.connect().await;
    let body = r#"{"stream": true}"#;
    client
        .write(format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert_eq!(client.head().await, 529);
    assert_eq!(client.header("content-type"), Some("application/json"));
    assert_eq!(client.header("x-admission-scope"), Some("worker"));
    assert_eq!(client.header("x-admission-rank"), None);
    let wait: u64 = client.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    let body = refusal(&mut client).await;
    assert_eq!(body["message"], "Service temporarily overloaded");
    assert_eq!(body["type"], "Overloaded");
    assert_eq!(body["code"], 529);
    assert_eq!(body["details"]["queued"], 1);

    drop((streaming, call, queued));
    bench.idle().await;
}

#[tokio::test]
async fn a_full_rank_names_itself_while_another_has_room() {
    let mut bench = Bench::with(limits(1, 1, 0), &[3, 4], |_| {}).await;
    let one = bench.post_with("x-data-parallel-rank: 4\r\n").await;
    bench.holds(1, 1, 0).await;
    let mut client = bench.post_with("x-dynamo-dp-rank: 4\r\n").await;
    assert_eq!(client.head().await, 529);
    assert_eq!(client.header("x-admission-scope"), Some("rank"));
    assert_eq!(client.header("x-admission-rank"), Some("4"));
    assert_eq!(refusal(&mut client).await["details"]["rank"], 4);

    // With the other full too it is the worker's; a rank unknown is no rank.
    let other = bench.post_with("x-data-parallel-rank: 3\r\n").await;
    bench.holds(2, 2, 0).await;
    for headers in [
        "x-data-parallel-rank: 4\r\n",
        "x-data-parallel-rank: 77\r\n",
        "",
    ] {
        let mut client = bench.post_with(headers).await;
        assert_eq!(client.head().await, 529);
        assert_eq!(
            client.header("x-admission-scope"),
            Some("worker"),
            "{headers}"
        );
        assert_eq!(client.header("x-admission-rank"), None);
    }
    let (mut first, mut second) = (bench.engine.call().await, bench.engine.call().await);
    drop((one, other));
    first.closed().await;
    second.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_rank_that_cannot_be_followed_is_the_clients_mistake() {
    let mut bench = Bench::start(1, 1, 0).await;
    for headers in [
        "x-data-parallel-rank: -1\r\n",
        "x-data-parallel-rank: 4294967296\r\n",
        "x-dynamo-dp-rank:\r\n",
        "x-data-parallel-rank: 1\r\nx-dynamo-dp-rank: 2\r\n",
    ] {
        let mut client = bench.post_with(headers).await;
        assert_eq!(client.head().await, 400, "{headers}");
        let body = refusal(&mut client).await;
        assert_eq!(
            (body["code"].as_u64(), body["type"].as_str()),
            (Some(400), Some("Bad Request"))
        );
    }
    assert_eq!(bench.total(|lane| lane.received), 0);
    bench.idle().await;
}

#[tokio::test]
async fn status_and_retry_after_follow_the_configuration() {
    let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
        config.overload_status = parse_status("555").unwrap();
        config.retry_after = false;
    })
    .await;
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.post().await;
    assert_eq!(client.head().await, 555);
    assert_eq!(client.header("retry-after"), None);
    let body = refusal(&mut client).await;
    assert_eq!(
        (body["code"].as_u64(), body["type"].as_str()),
        (Some(555), Some("Overloaded"))
    );
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_client_that_is_still_sending_reads_its_refusal() {
    let mut bench = Bench::start(1, 1, 0).await;
    let (streaming, _call) = bench.streaming().await;

    // Small enough to be thrown away: the connection lives on.
    let mut client = bench.connect().await;
    let head = "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n";
    client.write(head).await;
    assert_eq!(client.head().await, 529);
    refusal(&mut client).await;
    client.write(vec![b'x'; 100_000]).await;
    client.write(post("")).await;
    assert_eq!(client.head().await, 529);
    refusal(&mut client).await;

    // Never sent to its end: the answer comes, then the end.
    let mut client = bench.connect().await;
    client.write(head).await;
    client.write("x").await;
    assert_eq!(client.head().await, 529);
    refusal(&mut client).await;
    client.closed().await;
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_burst_gets_exactly_its_limits_and_refusals_cost_the_engine_nothing() {
    let mut bench = Bench::start(16, 16, 16).await;
    let mut clients = Vec::new();
    for _ in 0..500 {
        clients.push(bench.post().await);
    }
    bench
        .until("all have arrived", |seen| {
            seen.total(|lane| lane.received) == 500
        })
        .await;
    assert_eq!(bench.counts(), (16, 16, 16));
    assert_eq!(bench.total(|lane| lane.rejected()), 468);
    let mut calls = Vec::new();
    for _ in 0..16 {
        calls.push(bench.engine.call().await);
    }
    assert!(bench.engine.is_idle());
    // Those that are in go one by one; each lets a queued one in.
    for mut call in calls {
        call.write(JSON).await;
    }
    for _ in 0..16 {
        bench.engine.answer(JSON).await;
    }
    bench.holds(0, 0, 0).await;
    let mut served = 0;
    for client in &mut clients {
        served += u32::from(client.head().await == 200);
    }
    assert_eq!(served, 32);
    bench.idle().await;
}

#[tokio::test]
async fn idle_connections_hold_nothing() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut open = Vec::new();
    for _ in 0..1000 {
        open.push(bench.connect().await);
    }
    assert_eq!(bench.counts(), (0, 0, 0));
    bench.idle().await;
    assert_eq!(bench.total(|lane| lane.received), 1);
}
