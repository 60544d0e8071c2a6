//! An engine to talk to, and ways to read its answers.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tidegate_gateway::engine::{Engine, EngineConfig};
use tokio::time::timeout;

pub const WAIT: Duration = Duration::from_secs(5);
/// How long a silence must last to count as one.
pub const SILENCE: Duration = Duration::from_millis(150);

pub async fn engine(config: EngineConfig) -> Engine {
    let speed = 100.0;
    Engine::start(EngineConfig { speed, ..config })
        .await
        .expect("a free port")
}

/// Waits up to 5 s for what should come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(WAIT, what).await.expect("within 5 s")
}

pub async fn until(mut condition: impl FnMut() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// A request on a connection of its own.
pub async fn send(
    engine: &Engine,
    path: &str,
    headers: Headers<'_>,
    body: impl Into<Bytes>,
) -> Result<Response<Incoming>, Error> {
    let body = body.into();
    let method = if body.is_empty() { "GET" } else { "POST" };
    let mut request = Request::builder()
        .method(method)
        .uri(engine.url() + path)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let client = Client::builder(TokioExecutor::new()).build_http();
    client
        .request(request.body(Full::new(body)).expect("a request"))
        .await
}

pub async fn text(response: Response<Incoming>) -> String {
    let body = soon(response.into_body().collect()).await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

pub async fn ask(
    engine: &Engine,
    path: &str,
    headers: Headers<'_>,
    body: Value,
) -> (StatusCode, Value) {
    let response = soon(send(engine, path, headers, body.to_string()))
        .await
        .expect("an answer");
    let status = response.status();
    (
        status,
        serde_json::from_str(&text(response).await).expect("JSON"),
    )
}

pub async fn page(engine: &Engine, path: &str) -> String {
    text(soon(send(engine, path, &[], "")).await.expect("an answer")).await
}

pub fn chat(stream: bool, max_tokens: u32) -> Value {
    json!({"model": "sim", "messages": [{"role": "user", "content": "How high is the tide?"}],
           "stream": stream, "max_tokens": max_tokens, "ignore_eos": true})
}

/// The data of each event, in order.
pub fn events(stream: &str) -> Vec<&str> {
    let frames = stream.split_terminator("\n\n");
    frames
        .map(|frame| frame.strip_prefix("data: ").expect("data only"))
        .collect()
}

pub fn chunk(data: &str) -> Value {
    serde_json::from_str(data).expect("JSON")
}

/// Reads until the body ends or fails, or falls silent once `enough` has come:
/// the text, and which it was.
pub async fn read(
    response: Response<Incoming>,
    silent: bool,
    enough: impl Fn(&str) -> bool,
) -> (String, &'static str) {
    let mut stream = BodyDataStream::new(response.into_body());
    let mut text = String::new();
    loop {
        let patience = if silent && enough(&text) {
            SILENCE
        } else {
            WAIT
        };
        match timeout(patience, stream.next()).await {
            Err(_) => return (text, "silence"),
            Ok(None) => return (text, "end"),
            Ok(Some(Err(_))) => return (text, "failure"),
            Ok(Some(Ok(bytes))) => text.push_str(&String::from_utf8_lossy(&bytes)),
        }
    }
}
