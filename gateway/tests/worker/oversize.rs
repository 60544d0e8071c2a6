//! Heads and bodies that are too large.

use super::asking::*;
use super::support::*;

const MOST: u64 = 100_000;

async fn small() -> Bench {
    Bench::with(limits(1, 1, 1), &[0], |config| config.max_body = MOST).await
}

#[tokio::test]
async fn a_head_beyond_64_kib_or_100_headers_is_refused() {
    let mut bench = small().await;
    let long = format!("x: {}\r\n", "y".repeat(64 << 10));
    let many: String = (0..101).map(|n| format!("x-{n}: 1\r\n")).collect();
    for headers in [long, many] {
        let mut client = bench.post_with(&headers).await;
        assert_eq!(client.head().await, 431);
        client.closed().await;
    }
    let target = format!("/{}", "x".repeat(70_000));
    let mut client = bench.connect().await;
    client
        .write(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n"))
        .await;
    let status = client.head().await;
    assert!([414, 431].contains(&status), "{status}");
    // Over HTTP/2 as well, and the connection lives on.
    let client = Http::Two.client(bench.worker.addr()).await;
    let long = "y".repeat(65 << 10);
    let mut asked = client.ask("/generate", &[("x-long", &long)]).await;
    assert_eq!(asked.status().await, 431);
    assert_eq!(bench.total(|lane| lane.received), 0);
    let mut asked = client.ask("/generate", &[]).await;
    bench.engine.answer(JSON).await;
    assert_eq!(asked.status().await, 200);
    bench.idle().await;
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_before_the_gate() {
    for http in Http::BOTH {
        let mut bench = small().await;
        let client = http.client(bench.worker.addr()).await;
        let body = "x".repeat(MOST as usize + 1);
        let mut asked = client.ask_with("/generate", &[], &body).await;
        assert_eq!(asked.status().await, 413, "{http:?}");
        let (text, _) = asked.whole().await;
        assert!(text.contains("larger than 100000 bytes"), "{text}");
        assert_eq!(bench.total(|lane| lane.received), 0);
        bench.idle().await;
    }
}

#[tokio::test]
async fn a_body_that_becomes_too_much_gives_its_slot_or_its_place_back() {
    let mut bench = small().await;
    let head = "POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = chunk(&"x".repeat(60_000));
    // In the engine.
    let mut client = bench.connect().await;
    client.write(head).await;
    let mut call = bench.engine.call().await;
    client.write(piece.repeat(2)).await;
    assert_eq!(client.head().await, 413);
    call.closed().await;
    bench.holds(0, 0, 0).await;
    // In the queue.
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.connect().await;
    client.write(head).await;
    bench.holds(1, 0, 1).await;
    client.write(piece.repeat(2)).await;
    assert_eq!(client.head().await, 413);
    bench.holds(1, 0, 0).await;
    drop(streaming);
    bench.idle().await;
}

/// What is not gated holds nothing, and is the engine's to judge.
#[tokio::test]
async fn other_routes_take_bodies_of_any_size() {
    let mut bench = small().await;
    let client = Http::One.client(bench.worker.addr()).await;
    let body = "x".repeat(3 * MOST as usize);
    let mut asked = client.ask_with("/v1/files", &[], &body).await;
    let mut call = bench.engine.call().await;
    assert_eq!(call.body().await.len(), body.len());
    call.write(JSON).await;
    assert_eq!(asked.status().await, 200);
}
