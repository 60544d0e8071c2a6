//! Connections of clients, and those to the engine.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::support::*;

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
