//! Clients that take their time: what that costs, and when it ends.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::asking::*;
use super::support::*;

const PATIENCE: Duration = Duration::from_millis(300);

async fn impatient(running: u32, waiting: u32, queued: u32) -> Bench {
    Bench::with(limits(running, waiting, queued), &[0], |config| {
        config.client_timeout = PATIENCE;
    })
    .await
}

#[tokio::test]
async fn a_connection_without_a_whole_head_is_closed() {
    let bench = impatient(1, 1, 0).await;
    for start in [
        "",
        "P",
        "POST /generate HTTP/1.1\r\nhost: x\r\n",
        // HTTP/2: nothing but its preface, and that in half.
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut client = bench.connect().await;
        client.write(start).await;
        client.closed().await;
    }
    // A byte now and then makes it no request.
    let mut client = bench.connect().await;
    client.write("GET /health HTTP/1.1\r\n").await;
    let trickle = async {
        while client.try_write("x").await {
            tokio::time::sleep(PATIENCE / 10).await;
        }
    };
    soon("the end of a trickle", trickle).await;
    assert_eq!(bench.total(|lane| lane.received), 0);
}

#[tokio::test]
async fn a_kept_connection_is_closed_when_nothing_is_asked_of_it() {
    let bench = impatient(1, 1, 0).await;
    let mut client = bench.connect().await;
    for _ in 0..3 {
        client
            .write("GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        assert_eq!(client.head().await, 200);
        client.body().await;
    }
    client.closed().await;

    let stream = TcpStream::connect(bench.worker.addr()).await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(
        TokioExecutor::new(),
        TokioIo::new(stream),
    )
    .await
    .unwrap();
    soon("the end of an idle HTTP/2 connection", connection)
        .await
        .unwrap();
    drop(sender);
}

/// An engine that is silent holds its slot, whatever the patience with clients:
/// nothing reaps what is quiet and alive.
#[tokio::test]
async fn a_client_that_waits_for_a_quiet_engine_is_not_slow() {
    for http in Http::BOTH {
        let mut bench = impatient(1, 1, 1).await;
        let client = http.client(bench.worker.addr()).await;
        let mut asked = client.ask("/generate", &[]).await;
        let mut call = bench.engine.call().await;
        let mut queued = client.ask("/generate", &[]).await;
        tokio::time::sleep(PATIENCE * 4).await;
        assert_eq!(bench.counts(), (1, 1, 1));
        call.write(EVENTS).await;
        call.write(token()).await;
        asked.status().await;
        asked.until("content").await;
        tokio::time::sleep(PATIENCE * 4).await;
        assert_eq!(bench.counts(), (1, 0, 1));
        call.write(token()).await;
        call.write(LAST).await;
        assert!(asked.whole().await.1, "{http:?}");
        bench.engine.answer(JSON).await;
        assert_eq!(queued.status().await, 200);
        bench.idle().await;
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_gives_its_place_or_its_slot_up() {
    let mut bench = impatient(1, 1, 1).await;
    let head = "POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    // In the engine.
    let mut client = bench.connect().await;
    client.write(head).await;
    let mut call = bench.engine.call().await;
    assert_eq!(client.head().await, 408);
    let body: serde_json::Value = serde_json::from_slice(&client.body().await).unwrap();
    assert_eq!(body["code"], 408);
    call.closed().await;
    client.closed().await;
    bench.holds(0, 0, 0).await;
    // In the queue.
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.connect().await;
    client.write(head).await;
    bench.holds(1, 0, 1).await;
    assert_eq!(client.head().await, 408);
    bench.holds(1, 0, 0).await;
    assert_eq!(bench.total(|lane| lane.cancelled), 1);
    drop(streaming);
    bench.idle().await;
}

#[tokio::test]
async fn a_body_that_comes_byte_by_byte_does_not_hold_its_slot() {
    let mut bench = impatient(1, 1, 0).await;
    let mut client = bench.connect().await;
    client
        .write("POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n")
        .await;
    let _call = bench.engine.call().await;
    let trickle = async {
        while client.try_write("x").await {
            tokio::time::sleep(PATIENCE / 10).await;
        }
    };
    soon("the end of a trickle", trickle).await;
    bench.idle().await;
}

/// More than all buffers on the way hold, to a client that reads nothing.
#[tokio::test]
async fn an_answer_that_nobody_reads_frees_its_slot_and_the_engine() {
    for http in Http::BOTH {
        let mut bench = impatient(1, 1, 0).await;
        let client = http.client(bench.worker.addr()).await;
        let mut raw = None;
        let asked = match http {
            Http::One => {
                raw = Some(bench.post().await);
                None
            }
            Http::Two => Some(client.ask("/generate", &[]).await),
        };
        let mut call = bench.engine.call().await;
        call.body().await;
        call.write(EVENTS).await;
        let piece = chunk(&"data: x\n\n".repeat(10_000));
        let poured = async { while call.try_write(&piece).await {} };
        soon("the engine's connection closes", poured).await;
        bench.holds(0, 0, 0).await;
        if http == Http::Two {
            // The connection and its other streams are as they were.
            let mut other = client.ask("/generate", &[]).await;
            bench.engine.answer(JSON).await;
            assert_eq!(other.status().await, 200);
        }
        bench.idle().await;
        drop((raw, asked));
    }
}
