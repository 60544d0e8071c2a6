//! What well-behaved engines answer, to good requests and to bad ones.

use http::HeaderMap;
use serde_json::{Value, json};
use tidegate_gateway::engine::EngineConfig;

use super::support::*;

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
