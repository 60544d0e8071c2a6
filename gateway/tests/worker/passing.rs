//! What passes through, and that it does so unchanged.

use super::support::*;

#[tokio::test]
async fn a_stream_passes_byte_for_byte_and_chunk_by_chunk() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post().await;
    let mut call = bench.engine.call().await;
    call.write(EVENTS).await;
    assert_eq!(client.head().await, 200);
    assert_eq!(client.header("content-type"), Some("text/event-stream"));
    for piece in [
        ": comment \u{FEFF}\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\r\r",
        "data: {\"choi",
        "ces\":[{\"delta\":{\"content\":\"\u{1F30A}\"}}]}\n",
        "\n",
        "whatever this is\0",
    ] {
        // Each is there before the next is sent.
        call.write(chunk(piece)).await;
        client.expect(chunk(piece)).await;
    }
    call.write(b"3\r\n\xFF\xFE\n\r\n").await;
    client.expect(b"3\r\n\xFF\xFE\n\r\n").await;
    call.write(LAST).await;
    client.expect(LAST).await;
    bench.idle().await;
}

#[tokio::test]
async fn headers_pass_except_those_of_the_connection() {
    let mut bench = Bench::start(4, 4, 0).await;
    let mut client = bench
        .post_with(
            "authorization: Bearer secret\r\nconnection: x-hop\r\nx-hop: 1\r\n\
             accept-encoding: gzip\r\nx-request-id: mine\r\ntraceparent: 00-a-b-01\r\n",
        )
        .await;
    let mut call = bench.engine.call().await;
    assert!(
        call.head.starts_with("post /v1/chat/completions http/1.1"),
        "{}",
        call.head
    );
    assert_eq!(call.header("authorization"), Some("bearer secret"));
    assert_eq!(call.header("x-request-id"), Some("mine"));
    assert_eq!(call.header("traceparent"), Some("00-a-b-01"));
    assert_eq!(call.header("x-hop"), None);
    assert_eq!(call.header("accept-encoding"), None);
    assert_eq!(
        call.header("host"),
        Some(bench.engine.addr.to_string().as_str())
    );
    call.write(
        "HTTP/1.1 418 Short And Stout\r\nconnection: close\r\nx-admission-scope: worker\r\nx-kept: 1\r\n\
         keep-alive: timeout=9\r\ncontent-length: 3\r\n\r\nabc",
    )
    .await;
    assert_eq!(client.head().await, 418);
    assert!(
        client.head.contains("418 short and stout"),
        "{}",
        client.head
    );
    assert_eq!(client.header("x-kept"), Some("1"));
    assert_eq!(client.header("x-admission-scope"), None);
    assert_eq!(client.header("keep-alive"), None);
    assert_eq!(client.header("x-request-id"), Some("mine"));
    assert_eq!(client.body().await, b"abc");
    bench.idle().await;
}

/// What nobody here can do is not passed over in silence.
#[tokio::test]
async fn demands_that_are_not_met_are_refused() {
    let mut bench = Bench::start(1, 1, 1).await;
    for (headers, status) in [
        ("expect: the-unexpected\r\ncontent-length: 2\r\n", 417),
        ("expect: 100-continue, x\r\ncontent-length: 2\r\n", 417),
        ("transfer-encoding: gzip, chunked\r\n", 501),
        (
            "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
            501,
        ),
    ] {
        for path in ["/generate", "/open"] {
            let mut client = bench.connect().await;
            client
                .write(format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n"))
                .await;
            assert_eq!(client.head().await, status, "{headers}");
            let body: serde_json::Value = serde_json::from_slice(&client.body().await).unwrap();
            assert_eq!(body["code"], status);
        }
    }
    assert_eq!(bench.total(|lane| lane.received), 0);
    // An engine's coding that nobody asked for.
    let mut client = bench.post().await;
    let coded = EVENTS.replace("chunked", "gzip, chunked");
    bench.engine.answer(&coded).await;
    assert_eq!(client.head().await, 502);
    bench.idle().await;
}

/// A log is no place for whatever a client calls itself.
#[tokio::test]
async fn a_request_has_one_id_that_can_be_read() {
    let mut bench = Bench::start(1, 1, 0).await;
    let long = format!("x-request-id: {}\r\n", "x".repeat(10_000));
    for headers in [
        "",
        "x-request-id:\r\n",
        "x-request-id: one\r\nx-request-id: two\r\n",
        "x-request-id: \u{e9}\r\n",
        &long,
    ] {
        let mut client = bench.post_with(headers).await;
        let mut call = bench.engine.call().await;
        assert_eq!(call.head.matches("x-request-id:").count(), 1);
        let id = call.header("x-request-id").unwrap().to_owned();
        assert_eq!(id.len(), 32, "{id}");
        call.write(JSON).await;
        assert_eq!(client.head().await, 200);
        assert_eq!(client.header("x-request-id"), Some(id.as_str()));
    }
    bench.idle().await;
}

#[tokio::test]
async fn other_routes_pass_without_the_gate() {
    let mut bench = Bench::start(1, 1, 0).await;
    let _streaming = bench.streaming().await;
    let mut client = bench.connect().await;
    client
        .write("GET /v1/models?x=%20y HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n")
        .await;
    let mut call = bench.engine.call().await;
    assert!(
        call.head.starts_with("get /v1/models?x=%20y "),
        "{}",
        call.head
    );
    assert_eq!(call.header("accept-encoding"), Some("gzip"));
    call.write("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 1\r\n\r\nn")
        .await;
    assert_eq!(client.head().await, 404);
    assert_eq!(client.body().await, b"n");
    assert_eq!(bench.total(|lane| lane.received), 1);
}

#[tokio::test]
async fn no_spelling_of_a_gated_path_slips_past() {
    let mut bench = Bench::start(1, 1, 0).await;
    let _streaming = bench.streaming().await;
    for path in [
        "//v1/./chat/completions",
        "/v1/chat%2Fcompletions",
        "/v1/completions/",
        "/v2/models/a%2Fb/infer",
    ] {
        let mut client = bench.connect().await;
        client
            .write(format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        assert_eq!(client.head().await, 529, "{path}");
    }
}

#[tokio::test]
async fn an_engine_claims_nothing_in_its_trailers_either() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.post_with("te: trailers\r\n").await;
    let mut call = bench.engine.call().await;
    call.write(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\
         trailer: x-admission-scope, x-kept\r\n\r\n2\r\nok\r\n0\r\n\
         x-admission-scope: worker\r\nx-kept: 1\r\n\r\n",
    )
    .await;
    assert_eq!(client.head().await, 200);
    client.expect("2\r\nok\r\n0\r\nx-kept: 1\r\n\r\n").await;
    bench.idle().await;
}
