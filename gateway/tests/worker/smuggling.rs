//! Requests that two servers could read in two ways.

use super::support::*;

/// Each is refused, or reaches the engine as one request with one length.
#[tokio::test]
async fn no_request_reaches_the_engine_with_two_lengths() {
    let lengths = [
        "content-length: 2\r\ncontent-length: 3\r\n",
        "content-length: 2, 3\r\n",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 2\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: identity\r\ncontent-length: 2\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding : chunked\r\n",
        "transfer-encoding:\u{b}chunked\r\n",
        " transfer-encoding: chunked\r\ncontent-length: 2\r\n",
        "content-length: +2\r\n",
        "content-length: -2\r\n",
        "content-length: 0x2\r\n",
        "content-length: 2 2\r\n",
        "content-length:\r\n",
        "content-length: 99999999999999999999\r\n",
        "content-length: 2\r\ncontent-length : 3\r\n",
        "content-length: 2\r\n folded: 1\r\n",
    ];
    let mut bench = Bench::start(8, 8, 0).await;
    for length in lengths {
        let mut client = bench.connect().await;
        // As one reads it the body is `{}`, as another it holds a request.
        client
            .write(format!(
                "POST /generate HTTP/1.1\r\nhost: x\r\n{length}\r\n2\r\n{{}}\r\n0\r\n\r\n\
                 POST /smuggled HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        let refused = tokio::select! {
            status = client.head() => {
                assert_eq!(status, 400, "{length:?}");
                true
            }
            mut call = bench.engine.call() => {
                let framings = ["content-length:", "transfer-encoding:"]
                    .iter()
                    .map(|name| call.head.matches(name).count())
                    .sum::<usize>();
                assert_eq!(framings, 1, "{length:?}: {}", call.head);
                assert!(!call.head.contains("smuggled"), "{length:?}");
                call.body().await;
                // Nothing lies behind the body that was announced.
                assert!(call.is_silent().await, "{length:?}");
                false
            }
        };
        if refused {
            client.closed().await;
        }
        drop(client);
        bench.holds(0, 0, 0).await;
    }
    while !bench.engine.is_idle() {}
    bench.idle().await;
}

#[tokio::test]
async fn heads_that_make_no_sense_are_refused() {
    let mut bench = Bench::start(8, 8, 0).await;
    for head in [
        "POST /generate HTTP/1.1\r\nhost : x\r\n\r\n",
        "POST /generate HTTP/1.1\r\nho st: x\r\n\r\n",
        "POST /generate HTTP/1.1\r\nhost: x\r\n: nothing\r\n\r\n",
        "POST /generate HTTP/1.1\r\nhost: x\r\nx: a\rb\r\n\r\n",
        "POST /generate HTTP/1.1\r\nhost: x\r\nx: a\0b\r\n\r\n",
        "POST /generate HTTP/9.9\r\nhost: x\r\n\r\n",
        "POST  /generate HTTP/1.1\r\nhost: x\r\n\r\n",
        "POST /gen erate HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0",
    ] {
        let mut client = bench.connect().await;
        client.write(head).await;
        client.write("\r\n\r\n").await;
        assert_eq!(client.head().await, 400, "{head:?}");
        client.closed().await;
    }
    assert!(bench.engine.is_idle());
    assert_eq!(bench.total(|lane| lane.received), 0);
    bench.idle().await;
}

/// An answer with two lengths reaches the client with one.
#[tokio::test]
async fn no_answer_reaches_the_client_with_two_lengths() {
    let mut bench = Bench::start(8, 8, 0).await;
    for length in [
        "content-length: 2\r\ncontent-length: 3\r\n",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 2\r\n",
    ] {
        let mut client = bench.post().await;
        let mut call = bench.engine.call().await;
        call.body().await;
        call.write(format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n{length}\r\n2\r\n{{}}\r\n0\r\n\r\n"
        ))
        .await;
        let status = client.head().await;
        assert!([200, 502].contains(&status), "{length:?}: {status}");
        let framings = ["\ncontent-length:", "\ntransfer-encoding:"]
            .iter()
            .map(|name| client.head.matches(name).count())
            .sum::<usize>();
        assert_eq!(framings, 1, "{length:?}: {}", client.head);
        drop((client, call));
        bench.holds(0, 0, 0).await;
    }
    bench.idle().await;
}

/// A header that the client calls its connection's own stays behind before the
/// gate reads it: gate and engine see the same request.
#[tokio::test]
async fn what_a_client_calls_hop_by_hop_is_not_seen_by_the_gate_either() {
    let mut bench = Bench::with(limits(1, 1, 0), &[3, 4], |_| {}).await;
    let _client = bench
        .post_with(
            "x-data-parallel-rank: 4\r\nconnection: x-data-parallel-rank, content-length\r\n",
        )
        .await;
    let mut call = bench.engine.call().await;
    assert_eq!(call.header("x-data-parallel-rank"), None);
    assert_eq!(call.body().await, b"{}");
    assert_eq!(bench.snapshot().lanes[0].running, 1);
    assert_eq!(bench.snapshot().lanes[0].lane, tidegate::Lane::Unspecified);
}
