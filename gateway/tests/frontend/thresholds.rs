//! `/busy_threshold`, each row of its table, over HTTP.

use serde_json::{Value, json};

use super::codes::used;
use super::support::*;

/// Sends a request to the route, and reads its answer.
async fn ask(front: &Front, method: &str, kind: Option<&str>, body: &str) -> (u16, Value) {
    let kind = kind.map_or(String::new(), |kind| format!("content-type: {kind}\r\n"));
    let mut client = front
        .send(format!(
            "{method} /busy_threshold HTTP/1.1\r\nhost: x\r\n{kind}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    answer(&mut client).await
}

async fn set(front: &Front, body: &str) -> (u16, Value) {
    ask(front, "POST", Some("application/json"), body).await
}

async fn start() -> (Front, Scripted) {
    let worker = Scripted::with(Pages {
        metrics: Some(used(50)),
        ..Pages::default()
    })
    .await;
    let front = Front::start(&[&worker]).await;
    front.measures(BLOCKS, 50.0).await;
    (front, worker)
}

fn thresholds(blocks: Value, tokens: Value, frac: Value) -> Value {
    json!({
        "model": "m",
        "active_decode_blocks_threshold": blocks,
        "active_prefill_tokens_threshold": tokens,
        "active_prefill_tokens_threshold_frac": frac,
    })
}

/// An answer without what is said of sources.
fn plain((status, mut body): (u16, Value)) -> (u16, Value) {
    if let Some(object) = body.as_object_mut() {
        object.remove("without_source");
    }
    (status, body)
}

#[tokio::test]
async fn only_what_is_given_changes_and_all_is_told() {
    let (front, _worker) = start().await;
    let nothing = thresholds(Value::Null, Value::Null, Value::Null);
    let read = r#"{"model":"m"}"#;
    assert_eq!(plain(set(&front, read).await), (200, nothing));
    let body = r#"{"model":"m","active_decode_blocks_threshold":0.85,"active_prefill_tokens_threshold":10000}"#;
    let both = thresholds(json!(0.85), json!(10000), Value::Null);
    assert_eq!(plain(set(&front, body).await), (200, both.clone()));
    assert_eq!(plain(set(&front, read).await), (200, both));
    let body = r#"{"model":"m","active_decode_blocks_threshold":null,"active_prefill_tokens_threshold_frac":2}"#;
    let changed = thresholds(Value::Null, json!(10000), json!(2.0));
    assert_eq!(plain(set(&front, body).await), (200, changed.clone()));
    let (status, all) = ask(&front, "GET", None, "").await;
    assert_eq!(status, 200);
    let listed = all["thresholds"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(plain((200, listed[0].clone())).1, changed);
}

#[tokio::test]
async fn a_threshold_holds_at_once() {
    let (front, mut worker) = start().await;
    // Strictly more than: 50 of 100 blocks are not over a half.
    for (value, busy) in [
        ("0.49", true),
        ("0.5", false),
        ("0.0", true),
        ("null", false),
    ] {
        let body = format!(r#"{{"model":"m","active_decode_blocks_threshold":{value}}}"#);
        assert_eq!(set(&front, &body).await.0, 200);
        let mut client = front.post().await;
        if busy {
            assert_overloaded(&mut client, 529).await;
        } else {
            worker.answer(JSON).await;
            assert_eq!(client.head().await, 200);
        }
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_status() {
    let (front, _worker) = start().await;
    let long = format!(r#"{{"model":"m","x":"{}"}}"#, "x".repeat(70_000));
    for (status, body) in [
        (
            404,
            r#"{"model":"other","active_decode_blocks_threshold":0.5}"#,
        ),
        (400, r#"{"model":"m","active_decode_blocks_threshold":1.5}"#),
        (
            400,
            r#"{"model":"m","active_decode_blocks_threshold":-0.1}"#,
        ),
        (
            400,
            r#"{"model":"m","active_prefill_tokens_threshold_frac":-1}"#,
        ),
        (400, r#"{"model":"m""#),
        (400, ""),
        (422, r#"{"active_decode_blocks_threshold":0.5}"#),
        (422, r#"{"model":"m","active_prefill_tokens_threshold":-1}"#),
        (
            422,
            r#"{"model":"m","active_prefill_tokens_threshold":1.5}"#,
        ),
        (422, r#"{"model":7}"#),
        (422, "[]"),
        (413, &long),
    ] {
        let (got, said) = set(&front, body).await;
        assert_eq!(got, status, "{body:.80}: {said}");
        let error = said["error"].as_str().unwrap();
        let alone = said.as_object().unwrap().len() == 1;
        assert!(!error.is_empty() && alone, "{said}");
    }
    for kind in [None, Some("text/plain")] {
        let (status, said) = ask(&front, "POST", kind, r#"{"model":"m"}"#).await;
        let expected = "Expected request with Content-Type application/json";
        assert_eq!((status, said["error"].as_str()), (415, Some(expected)));
    }
    assert_eq!(ask(&front, "DELETE", None, "").await.0, 405);
    // Nothing of it has changed anything.
    let (_, all) = ask(&front, "GET", None, "").await;
    let blocks = &all["thresholds"][0]["active_decode_blocks_threshold"];
    assert_eq!(blocks, &Value::Null);
    // A model that nobody serves can be read, and has none.
    let (status, said) = set(&front, r#"{"model":"other"}"#).await;
    let blocks = &said["active_decode_blocks_threshold"];
    assert_eq!((status, blocks), (200, &Value::Null));
}

#[tokio::test]
async fn a_threshold_without_a_source_is_marked() {
    let worker = Scripted::start().await;
    let front = Front::start(&[&worker]).await;
    let body = r#"{"model":"m","active_decode_blocks_threshold":0.5}"#;
    let (_, said) = set(&front, body).await;
    let marked = json!(["active_decode_blocks_threshold"]);
    assert_eq!(said["without_source"], marked);
}

#[tokio::test]
async fn the_routes_can_be_taken_away() {
    let worker = Scripted::start().await;
    let front = Front::with(&[&worker], |config| config.monitor.admin_api = false).await;
    assert_eq!(ask(&front, "GET", None, "").await.0, 404);
    assert_eq!(set(&front, r#"{"model":"m"}"#).await.0, 404);
}
