//! Clients that leave with something unread behind their request, which hides the
//! end of their connection from whoever only reads.

use std::net::Shutdown;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::support::*;

/// What is found behind requests in the field: a stray line end, the first byte of
/// something, a request that is not to be read yet, and more than anyone buffers.
fn surplus() -> [String; 5] {
    [
        "\r\n".to_owned(),
        "G".to_owned(),
        "GARBAGE\r\n\r\n".to_owned(),
        post(""),
        post("").repeat(200),
    ]
}

fn leave(client: Wire, how: &str) {
    match how {
        "close" => drop(client),
        _ => client.reset(),
    }
}

const HOW: [&str; 2] = ["close", "reset"];

#[tokio::test]
async fn before_the_answer() {
    let mut bench = Bench::start(1, 1, 0).await;
    for surplus in surplus() {
        for how in HOW {
            let mut client = bench.connect().await;
            client.write(post("") + &surplus).await;
            let mut call = bench.engine.call().await;
            call.body().await;
            bench.holds(1, 1, 0).await;
            leave(client, how);
            call.closed().await;
            bench.holds(0, 0, 0).await;
        }
    }
    bench.idle().await;
}

#[tokio::test]
async fn mid_stream_on_an_engine_that_has_fallen_silent() {
    let mut bench = Bench::start(1, 1, 0).await;
    for surplus in surplus() {
        for how in HOW {
            let (mut client, mut call) = bench.streaming().await;
            client.write(&surplus).await;
            assert!(client.is_silent().await);
            leave(client, how);
            call.closed().await;
            bench.holds(0, 0, 0).await;
        }
    }
    bench.idle().await;
}

#[tokio::test]
async fn while_queued() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    let mut left = 0;
    for surplus in surplus() {
        for how in HOW {
            let mut queued = bench.connect().await;
            queued.write(post("") + &surplus).await;
            bench.holds(1, 0, 1).await;
            leave(queued, how);
            bench.holds(1, 0, 0).await;
            left += 1;
            assert_eq!(bench.total(|lane| lane.cancelled), left);
        }
    }
    assert_eq!(bench.total(|lane| lane.rejected()), 0);
    assert!(bench.engine.is_idle());
    drop(streaming);
    bench.idle().await;
}

/// Nobody reads the body of a client that waits for leave to send it.
#[tokio::test]
async fn while_waiting_for_leave_to_send_a_body() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    for how in HOW {
        let mut queued = bench.connect().await;
        queued
            .write("POST /generate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
            .await;
        bench.holds(1, 0, 1).await;
        leave(queued, how);
        bench.holds(1, 0, 0).await;
    }
    assert_eq!(bench.total(|lane| lane.cancelled), 2);
    assert!(bench.engine.is_idle());
    drop(streaming);
    bench.idle().await;
}

/// Nor that of a queued one whose body is past the budget.
#[tokio::test]
async fn while_queued_with_a_body_past_the_budget() {
    for (budget, body) in [(0, 2), (0, 30_000), (1000, 30_000)] {
        let change = |config: &mut tidegate_gateway::worker::WorkerConfig| {
            config.buffer_budget = budget;
        };
        let mut bench = Bench::with(limits(1, 1, 1), &[0], change).await;
        let (streaming, _call) = bench.streaming().await;
        for how in HOW {
            let mut queued = bench.connect().await;
            queued
                .write(format!(
                    "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: {body}\r\n\r\n{}",
                    "x".repeat(body)
                ))
                .await;
            bench.holds(1, 0, 1).await;
            leave(queued, how);
            bench.holds(1, 0, 0).await;
        }
        assert_eq!(bench.total(|lane| lane.cancelled), 2);
        assert!(bench.engine.is_idle());
        drop(streaming);
        bench.idle().await;
    }
}

/// An engine that does not read holds up the upload, and nobody reads on.
#[tokio::test]
async fn mid_upload_to_an_engine_that_does_not_read() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    let head = format!(
        "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        200_usize << 20
    );
    client.write(head).await;
    let mut call = bench.engine.call().await;
    let body = "x".repeat(1 << 20);
    let full = async {
        loop {
            client.write(&body).await;
        }
    };
    let stalled = std::time::Duration::from_millis(500);
    assert!(tokio::time::timeout(stalled, full).await.is_err());
    client.reset();
    bench.holds(0, 0, 0).await;
    call.closed().await;
    bench.idle().await;
}

#[tokio::test]
async fn requests_sent_ahead_by_a_client_that_stays_are_all_answered() {
    let mut bench = Bench::start(1, 1, 0).await;
    let mut client = bench.connect().await;
    let requests: String = (0..5)
        .map(|n| post(&format!("x-number: {n}\r\n")))
        .collect();
    client.write(requests + "\r\n").await;
    for n in 0..5 {
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("x-number"), Some(n.to_string().as_str()));
        assert_eq!(call.body().await, b"{}");
        assert!(bench.engine.is_idle());
        call.write(JSON).await;
        assert_eq!(client.head().await, 200);
        assert_eq!(client.body().await, b"{}");
    }
    bench.idle().await;
}

/// A client that asks and ends its sending at once has left, but not before what
/// it asked for is known: an answer at hand reaches it, a request counts.
#[tokio::test]
async fn what_came_before_the_end_is_acted_on() {
    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    for (round, how) in HOW.into_iter().cycle().take(20).enumerate() {
        leave(bench.post().await, how);
        let cancelled = round as u64 + 1;
        bench
            .until("it is cancelled", |seen| {
                seen.total(|lane| lane.cancelled) == cancelled
            })
            .await;
    }
    let mut client = bench.connect().await;
    client
        .write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    client.end().await;
    assert_eq!(client.head().await, 200);
    client.body().await;
    client.closed().await;
    assert_eq!(bench.counts(), (1, 0, 0));
    assert!(bench.engine.is_idle());
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn with_several_streams_on_one_http_2_connection() {
    let mut bench = Bench::start(2, 2, 0).await;
    let stream = std::net::TcpStream::connect(bench.worker.addr()).unwrap();
    let socket = stream.try_clone().unwrap();
    stream.set_nonblocking(true).unwrap();
    let stream = TcpStream::from_std(stream).unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut request = || {
        let request = http::Request::post("http://worker/v1/chat/completions")
            .body(Full::new(Bytes::from_static(b"{}")))
            .unwrap();
        tokio::spawn(sender.send_request(request))
    };
    let _answers = [request(), request()];
    let mut calls = [bench.engine.call().await, bench.engine.call().await];
    bench.holds(2, 2, 0).await;
    socket.shutdown(Shutdown::Both).unwrap();
    for call in &mut calls {
        call.closed().await;
    }
    bench.holds(0, 0, 0).await;
    bench.idle().await;
}
