//! Clients that are told while they are queued how far they are.

use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::worker::{Trust, WorkerConfig};

use super::asking::*;
use super::support::*;

const ASKS: &[(&str, &str)] = &[("x-admission-progress", "1")];
const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#"{"messages":[],"stream":true}"#;

async fn bench(queued: u32, change: impl FnOnce(&mut WorkerConfig)) -> Bench {
    Bench::with(limits(1, 1, queued), &[0], change).await
}

/// The one event of a body that began with news.
fn error(body: &str) -> Value {
    let events: Vec<&str> = body
        .split("\n\n")
        .filter(|event| !event.is_empty())
        .collect();
    let (last, news) = events.split_last().unwrap();
    assert!(!news.is_empty());
    for news in news {
        assert!(news.starts_with(": queued position="), "{body}");
    }
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let error: Value = serde_json::from_str(data).unwrap();
    for member in ["message", "type", "code"] {
        assert_eq!(error[member], error["error"][member], "{body}");
    }
    error
}

#[tokio::test]
async fn positions_come_at_once_and_then_the_engines_stream() {
    for http in Http::BOTH {
        let mut bench = bench(3, |_| {}).await;
        // Something is known of how fast requests finish.
        bench.idle().await;
        let (streaming, _call) = bench.streaming().await;
        let client = http.client(bench.worker.addr()).await;
        let mut asked = Vec::new();
        for position in 1..=3 {
            let headers = &[ASKS, &[("x-request-id", "mine")]].concat();
            let mut told = client.ask_with(CHAT, headers, STREAM).await;
            assert_eq!(told.status().await, 200);
            assert_eq!(told.header("content-type"), Some("text/event-stream"));
            assert_eq!(told.header("x-request-id"), Some("mine"));
            told.until(&format!(": queued position={position}")).await;
            asked.push(told);
        }
        assert!(bench.engine.is_idle());
        asked[0].until("position=1 expected_wait_seconds=").await;
        // One leaves, and another one's turn comes.
        let gone = asked.remove(1);
        drop(gone);
        bench.holds(1, 0, 2).await;
        drop(streaming);
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("x-admission-progress"), None);
        assert_eq!(call.body().await, STREAM.as_bytes());
        asked[1].until("position=1").await;
        call.write(EVENTS).await;
        call.write(token()).await;
        asked[0].until("content").await;
        bench.holds(1, 0, 1).await;
        call.write(LAST).await;
        let (body, whole) = asked[0].whole().await;
        let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        assert!(whole && body.ends_with(&format!("\n\n{stream}")), "{body}");
        assert!(body.starts_with(": queued position=1"), "{body}");
        // Cut in the middle of the stream, it is cut as any other.
        let mut call = bench.engine.call().await;
        call.body().await;
        call.write(EVENTS).await;
        call.write(token()).await;
        asked[1].until("content").await;
        drop(call);
        assert!(!asked[1].whole().await.1, "{http:?}");
        bench.idle().await;
    }
}

#[tokio::test]
async fn who_does_not_wait_is_answered_as_ever() {
    for http in Http::BOTH {
        let mut bench = bench(1, |_| {}).await;
        let client = http.client(bench.worker.addr()).await;
        let mut admitted = client.ask_with(CHAT, ASKS, STREAM).await;
        bench
            .engine
            .answer("HTTP/1.1 418 No\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx")
            .await;
        assert_eq!(admitted.status().await, 418);
        assert_eq!(admitted.whole().await, ("x".to_owned(), true));
        let (streaming, _call) = bench.streaming().await;
        let mut queued = client.ask_with(CHAT, ASKS, STREAM).await;
        bench.holds(1, 0, 1).await;
        let mut refused = client.ask_with(CHAT, ASKS, STREAM).await;
        assert_eq!(refused.status().await, 529);
        assert_eq!(refused.header("x-admission-scope"), Some("worker"));
        queued.status().await;
        drop((queued, streaming));
        bench.idle().await;
    }
}

/// Those who did not ask, may not ask, or do not stream get their real status line.
#[tokio::test]
async fn others_wait_for_their_status() {
    for (trust, headers, body) in [
        (Trust::Loopback, &[][..], STREAM),
        (Trust::None, ASKS, STREAM),
        (Trust::Loopback, &[("x-admission-progress", "yes")], STREAM),
        (Trust::Loopback, ASKS, r#"{"stream":false}"#),
        (Trust::Loopback, ASKS, r#"{"a":{"stream":true}}"#),
        (Trust::Loopback, ASKS, "no JSON"),
        (Trust::Loopback, ASKS, ""),
    ] {
        let mut bench = bench(1, |config| {
            config.trust = trust;
        })
        .await;
        let (streaming, _call) = bench.streaming().await;
        let client = Http::One.client(bench.worker.addr()).await;
        let mut asked = client.ask_with(CHAT, headers, body).await;
        bench.holds(1, 0, 1).await;
        drop(streaming);
        let mut call = bench.engine.call().await;
        assert_eq!(call.header("x-admission-progress"), None);
        assert_eq!(call.body().await, body.as_bytes());
        call.write("HTTP/1.1 418 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await;
        assert_eq!(asked.status().await, 418, "{headers:?} {body:.20}");
        bench.idle().await;
    }
}

/// What a body says that does not fit the budget is not known while it waits, nor what
/// one says that is sent by leave: no answer goes before it.
#[tokio::test]
async fn a_body_that_is_not_here_waits_for_its_status() {
    let body = format!(r#"{{"stream":true,"x":"{}"}}"#, "x".repeat(200_000));
    let small = |config: &mut WorkerConfig| config.buffer_budget = 500;
    let mut bench = Bench::with(limits(1, 1, 1), &[0], small).await;
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.connect().await;
    client
        .write(format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-admission-progress: 1\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    client.write(&body).await;
    bench.holds(1, 0, 1).await;
    assert!(client.is_silent().await);
    drop(streaming);
    let mut call = bench.engine.call().await;
    assert_eq!(call.body().await, body.as_bytes());
    call.write(JSON).await;
    assert_eq!(client.head().await, 200);
    assert_eq!(client.header("content-type"), Some("application/json"));
    drop(client);

    let mut bench = Bench::start(1, 1, 1).await;
    let (streaming, _call) = bench.streaming().await;
    let mut client = bench.connect().await;
    client
        .write(format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
             x-admission-progress: 1\r\ncontent-length: {}\r\n\r\n",
            STREAM.len()
        ))
        .await;
    bench.holds(1, 0, 1).await;
    assert!(client.is_silent().await);
    drop(streaming);
    assert_eq!(client.head().await, 100);
    client.write(STREAM).await;
    bench.engine.answer(JSON).await;
    assert_eq!(client.head().await, 200);
    assert_eq!(client.header("content-type"), Some("application/json"));
    bench.idle().await;
}

#[tokio::test]
async fn a_path_that_always_streams_needs_no_word_in_the_body() {
    let mut bench = bench(1, |_| {}).await;
    let (streaming, _call) = bench.streaming().await;
    let client = Http::One.client(bench.worker.addr()).await;
    let mut asked = client.ask("/generate_stream", ASKS).await;
    assert_eq!(asked.status().await, 200);
    asked.until("position=1").await;
    drop(asked);
    bench.holds(1, 0, 0).await;
    drop(streaming);
    bench.idle().await;
}

/// What the engine does once the request is there.
#[derive(Clone, Copy, Debug)]
enum Fails {
    Closes,
    Silent,
    Says(&'static str),
}

#[tokio::test]
async fn whatever_else_comes_is_one_error_event() {
    let refused = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\
                   content-type: application/json\r\ncontent-length: 16\r\n\r\n{\"error\":\"long\"}";
    let garbled = "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n";
    let coded = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\n\
                 content-type: text/event-stream\r\ncontent-length: 1\r\n\r\n\x1f";
    for http in Http::BOTH {
        for (fails, code, kind, told) in [
            (Fails::Closes, 502, "Bad Gateway", Value::Null),
            (Fails::Silent, 504, "Gateway Timeout", Value::Null),
            (Fails::Says(garbled), 502, "Bad Gateway", Value::Null),
            (
                Fails::Says(refused),
                400,
                "Bad Request",
                serde_json::json!({"error": "long"}),
            ),
            (Fails::Says(JSON), 502, "Bad Gateway", serde_json::json!({})),
            (Fails::Says(coded), 502, "Bad Gateway", "\x1f".into()),
        ] {
            let mut bench = bench(1, |config| {
                let silent = matches!(fails, Fails::Silent);
                config.engine_idle_timeout = silent.then_some(Duration::from_secs(1));
            })
            .await;
            let (streaming, held) = bench.streaming().await;
            let client = http.client(bench.worker.addr()).await;
            let mut asked = client.ask_with(CHAT, ASKS, STREAM).await;
            assert_eq!(asked.status().await, 200);
            asked.until("position=1").await;
            drop((streaming, held));
            let mut call = bench.engine.call().await;
            call.body().await;
            match fails {
                Fails::Closes => drop(call),
                Fails::Silent => call.closed().await,
                Fails::Says(what) => call.write(what).await,
            }
            let (body, whole) = asked.whole().await;
            let error = error(&body);
            assert!(whole, "{fails:?} {body}");
            assert_eq!(
                (&error["code"], &error["type"]),
                (&code.into(), &kind.into())
            );
            assert!(error["message"].is_string(), "{error}");
            assert_eq!(error["details"]["body"], told, "{fails:?}");
            bench.idle().await;
        }
    }
}

#[tokio::test]
async fn a_shutdown_tells_those_who_wait_and_those_in_the_engine() {
    for http in Http::BOTH {
        let mut bench = bench(2, |config| {
            config.drain_timeout = Duration::from_millis(100);
        })
        .await;
        let (streaming, held) = bench.streaming().await;
        let client = http.client(bench.worker.addr()).await;
        let mut asked = Vec::new();
        for position in ["position=1", "position=2"] {
            let mut told = client.ask_with(CHAT, ASKS, STREAM).await;
            told.status().await;
            told.until(position).await;
            asked.push(told);
        }
        drop((streaming, held));
        let mut call = bench.engine.call().await;
        bench.holds(1, 1, 1).await;
        let gate = bench.worker.gate().clone();
        let shutdown = tokio::spawn(bench.worker.shutdown());
        for mut asked in asked {
            let (body, whole) = asked.whole().await;
            assert!(whole, "{http:?} {body}");
            assert_eq!(error(&body)["code"], 503, "{http:?}");
        }
        call.closed().await;
        soon("the shutdown", shutdown).await.unwrap();
        let seen = gate.snapshot().worker;
        assert_eq!((seen.running, seen.waiting, seen.queued), (0, 0, 0));
    }
}

#[tokio::test]
async fn who_leaves_frees_the_place_and_the_slot() {
    for http in Http::BOTH {
        let mut bench = bench(1, |_| {}).await;
        let client = http.client(bench.worker.addr()).await;
        for in_engine in [false, true] {
            let (streaming, held) = bench.streaming().await;
            let mut asked = client.ask_with(CHAT, ASKS, STREAM).await;
            asked.status().await;
            asked.until("position=1").await;
            if in_engine {
                drop((streaming, held));
                let mut call = bench.engine.call().await;
                drop(asked);
                call.closed().await;
            } else {
                drop(asked);
                bench.holds(1, 0, 0).await;
                drop((streaming, held));
            }
            bench.idle().await;
        }
        assert_eq!(bench.total(|lane| lane.cancelled), 1, "{http:?}");
    }
}

/// A client that takes nothing is no reason to leave a slot unused: its turn is taken,
/// and given back once the patience is over.
#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_its_slot() {
    let mut bench = bench(1, |config| {
        config.client_timeout = Duration::from_millis(300);
    })
    .await;
    let (streaming, held) = bench.streaming().await;
    let client = Http::Two.client(bench.worker.addr()).await;
    let mut asked = client.ask_with(CHAT, ASKS, STREAM).await;
    asked.status().await;
    asked.until("position=1").await;
    drop((streaming, held));
    let mut call = bench.engine.call().await;
    call.body().await;
    call.write(EVENTS).await;
    let piece = chunk(&"data: x\n\n".repeat(10_000));
    let poured = async { while call.try_write(&piece).await {} };
    soon("the engine's connection closes", poured).await;
    bench.idle().await;
    drop(asked);
}
