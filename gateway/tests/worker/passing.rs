//! What passes through, and that it does so unchanged.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

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
async fn connections_to_the_engine_are_used_again_by_what_is_not_gated() {
    let mut bench = Bench::start(1, 1, 0).await;
    let get = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut client = bench.connect().await;
    client.write(get).await;
    let mut call = bench.engine.call().await;
    for round in 0..3 {
        call.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            .await;
        assert_eq!(client.head().await, 200);
        client.body().await;
        if round < 2 {
            // The client's connection is used again too.
            client.write(get).await;
            assert_eq!(call.head().await, 0);
        }
    }
    drop(call);
    bench.idle().await;
}

/// As llama.cpp does it: a stream ends, nothing says that the connection does, and
/// it does. The request that the gate lets out at this moment is not to be lost.
#[tokio::test]
async fn a_gated_request_has_a_connection_of_its_own() {
    let mut bench = Bench::start(1, 1, 4).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(bench.post().await);
    }
    bench.holds(1, 1, 4).await;
    for _ in 0..5 {
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("connection"), Some("close"));
        call.body().await;
        call.write(EVENTS.replace("connection: close\r\n", ""))
            .await;
        call.write(token() + LAST).await;
    }
    for client in &mut clients {
        assert_eq!(client.head().await, 200);
        client.body().await;
    }
    bench.idle().await;
}

#[tokio::test]
async fn a_tunnel_is_not_to_be_had() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    client
        .write("CONNECT somewhere:443 HTTP/1.1\r\nhost: somewhere:443\r\n\r\n")
        .await;
    assert_eq!(client.head().await, 400);
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
async fn cleartext_http_2_is_served_and_a_cancelled_stream_gives_its_slot_back() {
    let mut bench = Bench::start(1, 1, 0).await;
    let stream = TcpStream::connect(bench.worker.addr()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = || {
        http::Request::post("http://worker/v1/chat/completions")
            .body(Full::new(Bytes::from_static(b"{}")))
            .unwrap()
    };

    let answer = tokio::spawn(sender.send_request(request()));
    let mut call = bench.engine.call().await;
    assert_eq!(call.body().await, b"{}");
    call.write(EVENTS).await;
    call.write(token()).await;
    let mut answer = soon("the answer", answer).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let piece = soon("the token", answer.body_mut().frame())
        .await
        .unwrap()
        .unwrap();
    assert!(piece.into_data().unwrap().starts_with(b"data: "));

    // A second one on the same connection is refused, with a whole answer.
    let refused = soon("the refusal", sender.send_request(request()))
        .await
        .unwrap();
    assert_eq!(refused.status(), 529);
    assert_eq!(refused.headers()["x-admission-scope"], "worker");
    assert!(
        !refused
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );

    // Only the stream is cancelled; the connection stays.
    drop(answer);
    call.closed().await;
    bench.holds(0, 0, 0).await;
    let answer = tokio::spawn(sender.send_request(request()));
    bench.engine.answer(JSON).await;
    assert_eq!(
        soon("the answer", answer).await.unwrap().unwrap().status(),
        200
    );
    bench.idle().await;
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
