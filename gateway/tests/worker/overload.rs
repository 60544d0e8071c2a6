//! More than there is room for, over both versions of HTTP.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tidegate_gateway::worker::refusal::parse_status;
use tokio::net::TcpStream;

use super::asking::*;
use super::support::*;

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn every_refusal_has_the_configured_status_and_says_overloaded() {
    for http in Http::BOTH {
        for queue in [0, 1] {
            let mut bench = Bench::with(limits(1, 1, queue), &[3, 4], |config| {
                config.overload_status = parse_status("555").unwrap();
            })
            .await;
            let client = http.client(bench.worker.addr()).await;
            let mut held = Vec::new();
            let ranked: &[_] = &[("x-data-parallel-rank", "4")];
            for _ in 0..=queue {
                held.push(client.ask(CHAT, ranked).await);
                bench
                    .until("it has arrived", |seen| {
                        seen.total(|lane| lane.received) == held.len() as u64
                    })
                    .await;
            }
            for (path, body) in [
                (CHAT, r#"{"stream":true}"#),
                (CHAT, "{}"),
                ("/v2/models/x/infer", "{}"),
                ("/generate_stream", "{}"),
            ] {
                let mut refused = client.ask_with(path, ranked, body).await;
                assert_eq!(refused.status().await, 555, "{http:?} {path}");
                assert_eq!(refused.header("content-type"), Some("application/json"));
                assert_eq!(refused.header("x-admission-scope"), Some("rank"));
                assert_eq!(refused.header("x-admission-rank"), Some("4"));
                assert!(refused.header("retry-after").is_some());
                let (body, whole) = refused.whole().await;
                let body: Value = serde_json::from_str(&body).unwrap();
                assert!(whole && body["type"] == "Overloaded" && body["code"] == 555);
            }
            bench.engine.call().await;
            drop(held);
            bench.idle().await;
        }
    }
}

/// The connection goes on behind a refusal that may have no body.
#[tokio::test]
async fn a_refusal_with_a_status_without_a_body_has_none() {
    for status in [204, 205, 304] {
        for http in Http::BOTH {
            let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
                config.overload_status = parse_status(&status.to_string()).unwrap();
            })
            .await;
            let (streaming, _call) = bench.streaming().await;
            let client = http.client(bench.worker.addr()).await;
            for _ in 0..2 {
                let mut asked = client.ask(CHAT, &[]).await;
                assert_eq!(asked.status().await, status, "{http:?}");
                assert_eq!(asked.header("x-admission-scope"), Some("worker"));
                assert_eq!(asked.header("content-type"), None);
                assert_eq!(asked.whole().await, (String::new(), true), "{http:?}");
            }
            let mut kept = bench.post().await;
            for _ in 0..2 {
                assert_eq!(kept.head().await, status);
                assert!(kept.is_silent().await, "{status}");
                kept.write(post("")).await;
            }
            drop(streaming);
            drop(kept);
            bench.holds(0, 0, 0).await;
        }
    }
}

#[tokio::test]
async fn a_burst_on_one_http_2_connection_gets_exactly_its_limits() {
    let mut bench = Bench::start(16, 16, 16).await;
    let client = Http::Two.client(bench.worker.addr()).await;
    let mut all = Vec::new();
    for _ in 0..500 {
        all.push(client.ask(CHAT, &[]).await);
    }
    bench
        .until("all have arrived", |seen| {
            seen.total(|lane| lane.received) == 500
        })
        .await;
    assert_eq!(bench.counts(), (16, 16, 16));
    assert_eq!(bench.total(|lane| lane.rejected()), 468);
    for _ in 0..32 {
        bench.engine.answer(JSON).await;
    }
    let mut served = 0;
    for asked in &mut all {
        served += u32::from(asked.status().await == 200);
    }
    assert_eq!(served, 32);
    bench.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_hundred_over_capacity_every_one_ends() {
    for http in Http::BOTH {
        let mut bench = Bench::start(2, 2, 2).await;
        let addr = bench.worker.addr();
        let clients: Vec<_> = (0..200)
            .map(|_| {
                tokio::spawn(async move {
                    let client = http.client(addr).await;
                    let mut asked = client.ask(CHAT, &[]).await;
                    let status = asked.status().await;
                    assert!(asked.whole().await.1);
                    status
                })
            })
            .collect();
        bench
            .until("all have arrived", |seen| {
                seen.total(|lane| lane.received) == 200
            })
            .await;
        for _ in 0..4 {
            bench.engine.answer(JSON).await;
        }
        let mut served = 0;
        for client in clients {
            match soon("an end", client).await.unwrap() {
                200 => served += 1,
                status => assert_eq!(status, 529),
            }
        }
        assert_eq!(served, 4);
        bench.idle().await;
    }
}

/// The answer comes while the client still sends, its stream ends properly, and
/// other streams of the connection go on.
#[tokio::test]
async fn over_http_2_a_client_that_is_still_sending_reads_its_refusal() {
    let mut bench = Bench::start(1, 1, 0).await;
    let (streaming, _call) = bench.streaming().await;
    let stream = TcpStream::connect(bench.worker.addr()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut request = || {
        // A body without end, a little at a time.
        let pieces = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let piece = Frame::data(Bytes::from_static(&[b'x'; 10_000]));
            Some((Ok::<_, Infallible>(piece), ()))
        });
        let body = StreamBody::new(Box::pin(pieces));
        sender.send_request(
            http::Request::post("http://worker/generate")
                .body(body)
                .unwrap(),
        )
    };
    for _ in 0..3 {
        let answer = soon("the refusal", request()).await.unwrap();
        assert_eq!(answer.status(), 529);
        let body = soon("all of it", answer.into_body().collect())
            .await
            .unwrap();
        let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap();
        assert_eq!(body["type"], "Overloaded");
    }
    drop(streaming);
    bench.holds(0, 0, 0).await;
    let asked = tokio::spawn(request());
    let mut call = bench.engine.call().await;
    bench.holds(1, 1, 0).await;
    asked.abort();
    drop(sender);
    call.closed().await;
    bench.idle().await;
}

/// Two bodies that fit neither the budget nor a stream's window, on one connection.
#[tokio::test]
async fn over_http_2_bodies_beyond_the_budget_arrive_whole() {
    let mut bench = Bench::with(limits(1, 1, 2), &[0], |config| config.buffer_budget = 1000).await;
    let (streaming, call) = bench.streaming().await;
    let client = Http::Two.client(bench.worker.addr()).await;
    let body = "y".repeat(300_000);
    let mut asked = Vec::new();
    for _ in 0..2 {
        asked.push(client.ask_with("/generate", &[], &body).await);
    }
    bench.holds(1, 0, 2).await;
    drop((streaming, call));
    for asked in &mut asked {
        let mut call = bench.engine.call().await;
        assert_eq!(call.body().await.len(), body.len());
        call.write(JSON).await;
        assert_eq!(asked.status().await, 200);
    }
    bench.idle().await;
}

/// More queued bodies than 16 MiB hold, of which nobody reads any, before an upload
/// on the same connection that runs.
#[tokio::test]
async fn over_http_2_queued_bodies_do_not_hold_up_an_upload_that_runs() {
    const QUEUED: u64 = 300;
    let mut bench = Bench::with(limits(1, 1, QUEUED as u32), &[0], |config| {
        config.buffer_budget = 0;
    })
    .await;
    let stream = TcpStream::connect(bench.worker.addr()).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let _connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let ask = || {
        let (body, pieces) = tokio::sync::mpsc::channel::<Bytes>(1);
        let pieces = futures_util::stream::unfold(pieces, |mut pieces| async {
            let piece = pieces.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(piece)), pieces))
        });
        let request = http::Request::post(format!("http://worker{CHAT}"));
        let request = request.body(StreamBody::new(Box::pin(pieces))).unwrap();
        let mut sender = sender.clone();
        let asked = tokio::spawn(async move { sender.send_request(request).await });
        (body, tokio_util::task::AbortOnDropHandle::new(asked))
    };
    let (upload, running) = ask();
    let mut call = bench.engine.call().await;
    let mut queued = Vec::new();
    for _ in 0..QUEUED {
        let (body, asked) = ask();
        body.send(vec![b'y'; 100_000].into()).await.unwrap();
        queued.push((body, asked));
    }
    bench.holds(1, 1, QUEUED).await;
    // What they may send unasked is on its way by then.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let sent = tokio::spawn(async move {
        for _ in 0..100 {
            upload.send(vec![b'x'; 10_000].into()).await.unwrap();
        }
    });
    assert_eq!(call.body().await.len(), 1_000_000);
    sent.await.unwrap();
    call.write(JSON).await;
    let answer = soon("the answer", running).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    drop((answer, queued, sender));
    bench.holds(0, 0, 0).await;
    while !bench.engine.is_idle() {}
    bench.idle().await;
}

#[tokio::test]
async fn a_route_of_the_users_own_shares_the_gate() {
    for http in Http::BOTH {
        let mut bench = Bench::with(limits(1, 1, 0), &[0], |config| {
            config.gate_routes = vec!["/v1/audio/{kind}".parse().unwrap()];
        })
        .await;
        let (streaming, _call) = bench.streaming().await;
        let client = http.client(bench.worker.addr()).await;
        for route in ["/v1/audio/speech", "/v1//audio/%73peech/", "/v1/embeddings"] {
            let mut refused = client.ask(route, &[]).await;
            assert_eq!(refused.status().await, 529, "{http:?} {route}");
        }
        drop(streaming);
        bench.idle().await;
    }
}
