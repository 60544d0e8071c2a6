//! Failures on request: by header, and by the engine's setting.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use http::Response;
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use hyper_util::client::legacy::Error;
use serde_json::Value;
use tidegate_gateway::engine::{Engine, EngineConfig, Misbehave};
use tokio::time::timeout;

use super::support::*;

async fn misbehaving(
    engine: &Engine,
    kind: &str,
    stream: bool,
) -> Result<Response<Incoming>, Error> {
    let headers = [("x-sim-misbehave", kind)];
    soon(send(
        engine,
        "/v1/chat/completions",
        &headers,
        chat(stream, 6).to_string(),
    ))
    .await
}

#[tokio::test]
async fn each_misbehaviour_of_a_stream() {
    let engine = engine(EngineConfig::default()).await;
    // Kind, status, what ends the body, events before that.
    for (kind, status, ending, count) in [
        ("stall", 200, "silence", 0),
        ("stall-mid", 200, "silence", 4),
        ("reset-mid", 200, "failure", 4),
        ("truncated", 200, "end", 4),
        ("error-event", 200, "silence", 5),
        ("empty-stream", 200, "end", 0),
        ("bad-json", 200, "end", 1),
    ] {
        let answer = misbehaving(&engine, kind, true).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{kind}");
        let (text, how) = read(answer, ending == "silence", |text| {
            text.matches("\n\n").count() >= count
        })
        .await;
        assert_eq!(
            (how, events(&text).len()),
            (ending, count),
            "{kind}: {text}"
        );
        assert!(!text.contains("[DONE]"), "{kind}: {text}");
        assert_eq!(text.contains("\"error\""), kind == "error-event", "{text}");
    }
    for (kind, status) in [("http-400", 400), ("http-500", 500)] {
        let answer = misbehaving(&engine, kind, true).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{kind}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert!(text(answer).await.contains("\"error\""));
    }
    let error = misbehaving(&engine, "reset", true).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("ConnectionReset"),
        "{error:?}"
    );
    let never = [("x-sim-misbehave", "never-answer")];
    let never = send(
        &engine,
        "/v1/chat/completions",
        &never,
        chat(true, 6).to_string(),
    );
    assert!(timeout(SILENCE, never).await.is_err());
    until(|| engine.stats()[0].running == 0).await;
}

#[tokio::test]
async fn a_role_only_chunk_comes_a_second_before_the_words() {
    let engine = engine(EngineConfig::default()).await;
    let start = Instant::now();
    let answer = misbehaving(&engine, "role-only", true).await.unwrap();
    let mut stream = BodyDataStream::new(answer.into_body());
    let mut text = String::new();
    while !text.contains("[DONE]") {
        let frame = soon(stream.next()).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&frame));
        let words = events(&text).len() > 1;
        assert!(
            !words || start.elapsed() >= Duration::from_secs(1),
            "{text}"
        );
    }
    let first = chunk(events(&text)[0]);
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(text.matches("\"role\"").count(), 1);
}

#[tokio::test]
async fn misbehaviours_of_whole_answers_and_by_the_engines_setting() {
    let engine = engine(EngineConfig::default()).await;
    for (kind, status, ending) in [
        ("stall-mid", 200, "silence"),
        ("reset-mid", 200, "failure"),
        ("truncated", 200, "end"),
        ("bad-json", 200, "end"),
        ("error-event", 500, "end"),
    ] {
        let answer = misbehaving(&engine, kind, false).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{kind}");
        let (text, how) = read(answer, ending == "silence", |text| !text.is_empty()).await;
        assert_eq!(how, ending, "{kind}");
        let valid = serde_json::from_str::<Value>(&text).is_ok();
        assert_eq!(valid, status == 500, "{kind}: {text}");
    }
    engine.set_misbehave(Some(Misbehave::Http500), 1.0);
    assert_eq!(
        ask(&engine, "/v1/chat/completions", &[], chat(true, 1))
            .await
            .0,
        500
    );
    engine.set_misbehave(None, 1.0);
    assert_eq!(
        ask(&engine, "/v1/chat/completions", &[], chat(false, 1))
            .await
            .0,
        200
    );
}
