//! Bodies of requests arrive whole, whenever they do.

use super::support::*;

#[tokio::test]
async fn request_bodies_pass_unchanged_with_and_without_a_length() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    client
        .write("POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    let mut call = bench.engine.call().await;
    // The body streams: each part arrives before the next is sent.
    for piece in ["{\"prompt\":", "\"\u{1F30A}\"}"] {
        client.write(chunk(piece)).await;
        call.expect(chunk(piece)).await;
    }
    client.write(LAST).await;
    call.expect(LAST).await;
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    client.body().await;

    let big = "x".repeat(3 << 20);
    let head = format!(
        "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        big.len()
    );
    let sent = async {
        client.write(head).await;
        client.write(&big).await;
    };
    let received = async {
        let mut call = bench.engine.call().await;
        assert_eq!(call.body().await, big.as_bytes());
        call.write(JSON).await;
    };
    tokio::join!(sent, received);
    assert_eq!(client.head().await, 200);
    client.body().await;
    bench.idle().await;
}

#[tokio::test]
async fn the_body_of_a_queued_request_arrives_whole() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (_streaming, mut call) = bench.streaming().await;
    let body: String = (0..100_000).map(|n| format!("{n} ")).collect();
    let mut client = bench.connect().await;
    client
        .write(format!(
            "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    client.write(&body[..body.len() / 2]).await;
    bench.holds(1, 0, 1).await;
    client.write(&body[body.len() / 2..]).await;
    call.write(LAST).await;
    let mut call = bench.engine.call().await;
    assert_eq!(call.body().await, body.as_bytes());
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    bench.idle().await;
}

#[tokio::test]
async fn a_body_beyond_the_budget_arrives_whole_as_well() {
    let budget = |config: &mut tidegate_gateway::worker::WorkerConfig| config.buffer_budget = 1000;
    let mut bench = Bench::with(limits(1, 1, 1), &[0], budget).await;
    let (_streaming, mut call) = bench.streaming().await;
    let body = "y".repeat(4 << 20);
    let head = format!(
        "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut client = bench.connect().await;
    client.write(head).await;
    bench.holds(1, 0, 1).await;
    let sent = async { client.write(&body).await };
    let served = async {
        call.write(LAST).await;
        let mut call = bench.engine.call().await;
        assert_eq!(call.body().await, body.as_bytes());
        call.write(JSON).await;
    };
    tokio::join!(sent, served);
    assert_eq!(client.head().await, 200);
    client.body().await;
    bench.idle().await;
}

#[tokio::test]
async fn leave_to_send_a_body_comes_with_admission() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    let ask =
        "POST /generate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let mut client = bench.connect().await;
    client.write(ask).await;
    bench.holds(1, 0, 1).await;
    assert!(client.is_silent().await);

    // A refused one never gets it.
    let mut refused = bench.connect().await;
    refused.write(ask).await;
    assert_eq!(refused.head().await, 529);

    drop(streaming);
    assert_eq!(client.head().await, 100);
    client.write("{}").await;
    let mut call = bench.engine.call().await;
    assert_eq!(call.header("expect"), None);
    assert_eq!(call.body().await, b"{}");
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    bench.idle().await;
}
