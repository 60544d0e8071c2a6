//! The simulated engine over real sockets.

use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::engine::{Engine, EngineConfig, Misbehave};
use tokio::time::timeout;

const WAIT: Duration = Duration::from_secs(5);
/// How long a silence must last to count as one.
const SILENCE: Duration = Duration::from_millis(150);

async fn engine(config: EngineConfig) -> Engine {
    let speed = 100.0;
    Engine::start(EngineConfig { speed, ..config })
        .await
        .expect("a free port")
}

/// Waits up to 5 s for what should come.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(WAIT, what).await.expect("within 5 s")
}

async fn until(mut condition: impl FnMut() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A request on a connection of its own.
async fn send(
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

async fn text(response: Response<Incoming>) -> String {
    let body = soon(response.into_body().collect()).await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

async fn ask(
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

async fn page(engine: &Engine, path: &str) -> String {
    text(soon(send(engine, path, &[], "")).await.expect("an answer")).await
}

fn chat(stream: bool, max_tokens: u32) -> Value {
    json!({"model": "sim", "messages": [{"role": "user", "content": "How high is the tide?"}],
           "stream": stream, "max_tokens": max_tokens, "ignore_eos": true})
}

/// The data of each event, in order.
fn events(stream: &str) -> Vec<&str> {
    let frames = stream.split_terminator("\n\n");
    frames
        .map(|frame| frame.strip_prefix("data: ").expect("data only"))
        .collect()
}

fn chunk(data: &str) -> Value {
    serde_json::from_str(data).expect("JSON")
}

#[tokio::test]
async fn a_chat_streams_role_words_finish_usage_done() {
    let engine = engine(EngineConfig::default()).await;
    let mut body = chat(true, 5);
    body["stream_options"] = json!({"include_usage": true});
    let headers = [("x-sim-prompt-tokens", "77")];
    let answer = soon(send(
        &engine,
        "/v1/chat/completions",
        &headers,
        body.to_string(),
    ))
    .await
    .unwrap();
    assert_eq!(answer.status(), 200);
    let kind: &HeaderMap = answer.headers();
    assert!(
        kind["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    let stream = text(answer).await;
    let events = events(&stream);
    assert_eq!(events.len(), 1 + 5 + 1 + 1 + 1);
    let first = chunk(events[0]);
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(
        first["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    for event in &events[1..6] {
        let choice = &chunk(event)["choices"][0];
        assert!(!choice["delta"]["content"].as_str().unwrap().is_empty());
        assert_eq!(choice["finish_reason"], Value::Null);
    }
    assert_eq!(chunk(events[6])["choices"][0]["finish_reason"], "length");
    let usage = chunk(events[7]);
    assert_eq!(usage["choices"], json!([]));
    let expected = json!({"prompt_tokens": 77, "completion_tokens": 5, "total_tokens": 82});
    assert_eq!((&usage["usage"], events[8]), (&expected, "[DONE]"));
}

#[tokio::test]
async fn whole_answers_completions_and_embeddings() {
    let engine = engine(EngineConfig::default()).await;
    let (status, body) = ask(&engine, "/v1/chat/completions", &[], chat(false, 7)).await;
    assert_eq!(status, 200);
    assert_eq!(body["choices"][0]["message"]["role"], "assistant");
    assert_eq!(body["usage"]["completion_tokens"], 7);

    let prompt = json!({"prompt": [1, 2, 3], "max_completion_tokens": 50});
    let headers = [("x-sim-output-tokens", "4")];
    let (status, body) = ask(&engine, "/v1/completions", &headers, prompt).await;
    assert_eq!(
        (status.as_u16(), &body["object"]),
        (200, &json!("text_completion"))
    );
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let expected = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    assert_eq!(body["usage"], expected);

    let input = json!({"model": "sim", "input": ["one", "another one"]});
    let (status, body) = ask(&engine, "/v1/embeddings", &[], input).await;
    assert_eq!(
        (status.as_u16(), body["data"].as_array().unwrap().len()),
        (200, 2)
    );
}

#[tokio::test]
async fn bad_requests_get_openai_errors() {
    let engine = engine(EngineConfig::default()).await;
    let chat_path = "/v1/chat/completions";
    let long = ("x-sim-prompt-tokens", "4294967295");
    let cases: [(&str, Headers, &str, u16); 12] = [
        (chat_path, &[], "{", 400),
        (chat_path, &[], "\u{0}", 400),
        (chat_path, &[], "[]", 422),
        (chat_path, &[], "{}", 422),
        (
            chat_path,
            &[],
            r#"{"messages": [{"content": "no role"}]}"#,
            422,
        ),
        (chat_path, &[], r#"{"messages": [], "max_tokens": -1}"#, 422),
        (
            "/v1/completions",
            &[],
            r#"{"prompt": ["two", "prompts"]}"#,
            422,
        ),
        ("/v1/completions", &[long], r#"{"prompt": "x"}"#, 400),
        (
            "/v1/completions",
            &[("x-data-parallel-rank", "-1")],
            r#"{"prompt": "x"}"#,
            400,
        ),
        (
            "/v1/completions",
            &[("x-sim-misbehave", "nicely")],
            r#"{"prompt": "x"}"#,
            400,
        ),
        (
            "/v1/completions",
            &[],
            r#"{"model": "other", "prompt": "x"}"#,
            404,
        ),
        ("/v1/embeddings", &[], r#"{"input": 5}"#, 400),
    ];
    for (path, headers, body, expected) in cases {
        let answer = soon(send(&engine, path, headers, body.to_owned()))
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), expected, "{path} {body}");
        let error: Value = serde_json::from_str(&text(answer).await).expect("JSON");
        assert_eq!(error["error"]["type"], "invalid_request_error", "{body}");
    }
}

#[tokio::test]
async fn ranks_models_and_metrics_are_told() {
    let config = EngineConfig {
        ranks: 2,
        first_rank: 4,
        ..EngineConfig::default()
    };
    let engine = engine(config).await;
    let info: Value = serde_json::from_str(&page(&engine, "/get_server_info").await).unwrap();
    assert_eq!(
        (&info["dp_size"], &info["max_running_requests"]),
        (&json!(2), &json!(256))
    );
    let models: Value = serde_json::from_str(&page(&engine, "/v1/models").await).unwrap();
    assert_eq!(models["data"][0]["id"], "sim");

    let headers = [("x-dynamo-dp-rank", "5"), ("x-sim-prompt-tokens", "9")];
    ask(&engine, "/v1/chat/completions", &headers, chat(false, 3)).await;
    let stats = engine.stats();
    assert_eq!(
        (stats[0].received, stats[1].received, stats[1].finished),
        (0, 1, 1)
    );
    let metrics = page(&engine, "/metrics").await;
    for line in [
        "vllm:num_requests_running{model_name=\"sim\",engine=\"4\"} 0",
        "vllm:num_requests_waiting{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:kv_cache_usage_perc{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:gpu_cache_usage_perc{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:num_preemptions_total{model_name=\"sim\",engine=\"5\"} 0",
        "vllm:prompt_tokens_total{model_name=\"sim\",engine=\"5\"} 9",
        "vllm:generation_tokens_total{model_name=\"sim\",engine=\"5\"} 3",
        "vllm:time_to_first_token_seconds_count{model_name=\"sim\",engine=\"5\"} 1",
        "vllm:e2e_request_latency_seconds_bucket{model_name=\"sim\",engine=\"5\",le=\"+Inf\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
}

#[tokio::test]
async fn a_loading_engine_answers_503_but_serves_its_metrics() {
    let startup_delay = Duration::from_secs(3600);
    let engine = engine(EngineConfig {
        startup_delay,
        ..EngineConfig::default()
    })
    .await;
    let (status, _) = ask(&engine, "/v1/chat/completions", &[], chat(true, 3)).await;
    assert_eq!(status, 503);
    assert!(page(&engine, "/health").await.contains("loading"));
    assert!(page(&engine, "/metrics").await.contains("vllm:"));
}

/// A client that leaves frees batch and cache, streaming, waiting or whole.
#[tokio::test]
async fn a_client_that_leaves_frees_what_it_held() {
    let config = EngineConfig {
        batch: BatchConfig {
            max_num_seqs: 2,
            ..BatchConfig::default()
        },
        ..EngineConfig::default()
    };
    // In real time, so that nothing ends by itself.
    let engine = Engine::start(config).await.unwrap();
    let path = "/v1/chat/completions";
    let streaming = soon(send(&engine, path, &[], chat(true, 50_000).to_string()))
        .await
        .unwrap();
    let mut stream = BodyDataStream::new(streaming.into_body());
    soon(stream.next()).await.unwrap().unwrap();
    let body = chat(false, 50_000).to_string();
    let mut whole = Box::pin(send(&engine, path, &[], body));
    tokio::select! {
        answer = &mut whole => panic!("answered {answer:?}"),
        () = until(|| engine.stats()[0].running == 2) => {}
    }
    let waiting = soon(send(&engine, path, &[], chat(true, 50_000).to_string()))
        .await
        .unwrap();
    until(|| engine.stats()[0].waiting == 1).await;
    assert_eq!(engine.stats()[0].running, 2);

    drop(waiting);
    until(|| engine.stats()[0].waiting == 0).await;
    drop(stream);
    until(|| engine.stats()[0].running == 1).await;
    drop(whole);
    until(|| engine.stats()[0].running == 0 && engine.stats()[0].kv_blocks_used == 0).await;
    assert_eq!(engine.stats()[0].cancelled, 3);
}

#[tokio::test]
async fn stopping_cuts_streams() {
    let engine = Engine::start(EngineConfig::default()).await.unwrap();
    let body = chat(true, 50_000).to_string();
    let answer = soon(send(&engine, "/v1/chat/completions", &[], body))
        .await
        .unwrap();
    soon(engine.shutdown()).await;
    let (text, _) = read(answer, false, |_| true).await;
    assert!(!text.contains("[DONE]"));
}

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

/// Reads until the body ends or fails, or falls silent once `enough` has come:
/// the text, and which it was.
async fn read(
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

#[tokio::test]
async fn settings_out_of_range_and_taken_ports_are_errors() {
    for config in [
        EngineConfig {
            ranks: 0,
            ..EngineConfig::default()
        },
        EngineConfig {
            ranks: 2,
            first_rank: u32::MAX,
            ..EngineConfig::default()
        },
        EngineConfig {
            speed: f64::NAN,
            ..EngineConfig::default()
        },
        EngineConfig {
            misbehave_rate: 1.5,
            ..EngineConfig::default()
        },
    ] {
        let error = Engine::start(config).await.err().expect("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    let first = engine(EngineConfig::default()).await;
    let listen = first.addr();
    let second = Engine::start(EngineConfig {
        listen,
        ..EngineConfig::default()
    })
    .await;
    assert_eq!(
        second.err().expect("taken").kind(),
        std::io::ErrorKind::AddrInUse
    );
}
