//! `/busy_threshold`, each row of its table.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tidegate_gateway::monitor::admin::{MAX_BODY, answer};
use tidegate_gateway::monitor::{
    Joining, Member, Monitor, MonitorSettings, Reading, Sample, Source, Thresholds, Totals,
};
use tokio::time::Instant;

const JSON: Option<&str> = Some("application/json");

/// A worker that serves `m` and `org/n`, and has told its size.
fn served() -> (Monitor, Member) {
    served_with(Thresholds::default())
}

fn served_with(thresholds: Thresholds) -> (Monitor, Member) {
    let monitor = Monitor::new(MonitorSettings {
        thresholds,
        totals: Totals {
            kv_total_blocks: Some(100),
            max_num_batched_tokens: Some(1000),
            block_size: None,
        },
        ..MonitorSettings::default()
    });
    let joining = Joining {
        models: ["m".to_owned(), "org/n".to_owned()].into(),
        ..Joining::new(1)
    };
    let member = monitor.add(joining).unwrap();
    (monitor, member)
}

fn shown(model: &str, blocks: Value, tokens: Value, frac: Value) -> Value {
    json!({
        "model": model,
        "active_decode_blocks_threshold": blocks,
        "active_prefill_tokens_threshold": tokens,
        "active_prefill_tokens_threshold_frac": frac,
    })
}

fn post(monitor: &Monitor, body: &str) -> (u16, Value) {
    let answer = answer(monitor, &Method::POST, JSON, body.as_bytes());
    (answer.status.as_u16(), answer.body)
}

/// The status and the error's text.
#[track_caller]
fn refused(monitor: &Monitor, body: &str) -> (u16, String) {
    let (status, body) = post(monitor, body);
    let members = body.as_object().expect("an object");
    assert_eq!(members.len(), 1, "{body}");
    let text = body["error"].as_str().expect("a text");
    (status, text.to_owned())
}

fn all(monitor: &Monitor) -> Value {
    let answer = answer(monitor, &Method::GET, None, b"");
    assert_eq!(answer.status, StatusCode::OK);
    answer.body
}

#[test]
fn only_the_fields_given_change_and_all_are_told() {
    let (monitor, _member) = served();
    let none = Value::Null;
    let set = post(
        &monitor,
        r#"{"model":"m","active_decode_blocks_threshold":0.85}"#,
    );
    assert_eq!(
        set,
        (200, shown("m", json!(0.85), none.clone(), none.clone()))
    );
    let set = post(
        &monitor,
        r#"{"model":"m","active_prefill_tokens_threshold":10000}"#,
    );
    assert_eq!(
        set,
        (200, shown("m", json!(0.85), json!(10000), none.clone()))
    );
    let set = post(
        &monitor,
        r#"{"model":"m","active_prefill_tokens_threshold_frac":2}"#,
    );
    assert_eq!(
        set,
        (200, shown("m", json!(0.85), json!(10000), json!(2.0)))
    );
    let cleared = post(
        &monitor,
        r#"{"model":"m","active_decode_blocks_threshold":null}"#,
    );
    assert_eq!(
        cleared,
        (200, shown("m", none.clone(), json!(10000), json!(2.0)))
    );
    let other = post(&monitor, r#"{"model":"org/n"}"#);
    assert_eq!(
        other,
        (200, shown("org/n", none.clone(), none.clone(), none))
    );
}

#[test]
fn a_model_alone_is_read_and_changes_nothing() {
    let (monitor, _member) = served_with(Thresholds {
        active_decode_blocks: Some(0.5),
        ..Thresholds::default()
    });
    let none = Value::Null;
    let read = post(&monitor, r#" {"model":"m"} "#);
    assert_eq!(
        read,
        (200, shown("m", json!(0.5), none.clone(), none.clone()))
    );
    let unknown = post(&monitor, r#"{"model":"nobody's"}"#);
    let nothing = shown("nobody's", none.clone(), none.clone(), none);
    assert_eq!(unknown, (200, nothing));
    assert_eq!(all(&monitor)["thresholds"].as_array().unwrap().len(), 2);
}

#[test]
fn null_clears_what_a_flag_set_for_this_model_alone() {
    let (monitor, member) = served_with(Thresholds {
        active_prefill_tokens: Some(10),
        ..Thresholds::default()
    });
    let _held = member.started(None, "m", 400);
    assert!(member.busy("m").worker && member.busy("org/n").worker);
    let (status, _) = post(
        &monitor,
        r#"{"model":"m","active_prefill_tokens_threshold":null}"#,
    );
    assert_eq!(status, 200);
    assert!(!member.busy("m").worker && member.busy("org/n").worker);
}

#[test]
fn what_a_flag_set_stays_when_another_is_set() {
    let (monitor, _member) = served_with(Thresholds {
        active_prefill_tokens: Some(10),
        ..Thresholds::default()
    });
    let set = post(
        &monitor,
        r#"{"model":"m","active_decode_blocks_threshold":0.5}"#,
    );
    assert_eq!(set, (200, shown("m", json!(0.5), json!(10), Value::Null)));
    assert_eq!(monitor.thresholds("org/n").active_decode_blocks, None);
}

#[test]
fn get_lists_all_models() {
    let (monitor, member) = served();
    post(
        &monitor,
        r#"{"model":"org/n","active_decode_blocks_threshold":0}"#,
    );
    let none = Value::Null;
    let both = [
        shown("m", none.clone(), none.clone(), none.clone()),
        shown("org/n", json!(0.0), none.clone(), none),
    ];
    assert_eq!(all(&monitor), json!({ "thresholds": both }));
    // One that was set is kept, should its model come back.
    member.serves(["m".to_owned()]);
    let listed = all(&monitor);
    assert_eq!(
        listed["thresholds"][1]["active_decode_blocks_threshold"],
        json!(0.0)
    );
    member.serves([]);
    let (status, _) = post(
        &monitor,
        r#"{"model":"org/n","active_decode_blocks_threshold":1}"#,
    );
    assert_eq!(status, 404);
}

#[test]
fn a_threshold_that_nothing_is_known_to_judge_by_is_marked() {
    let monitor = Monitor::new(MonitorSettings::default());
    let joining = Joining {
        models: ["m".to_owned()].into(),
        ..Joining::new(1)
    };
    let member = monitor.add(joining).unwrap();
    let body = r#"{"model":"m","active_decode_blocks_threshold":0.5,"active_prefill_tokens_threshold":1,"active_prefill_tokens_threshold_frac":1}"#;
    let marked = json!([
        "active_decode_blocks_threshold",
        "active_prefill_tokens_threshold_frac"
    ]);
    assert_eq!(post(&monitor, body).1["without_source"], marked);
    assert_eq!(all(&monitor)["thresholds"][0]["without_source"], marked);
    let sample = Sample {
        totals: Totals {
            kv_total_blocks: Some(10),
            max_num_batched_tokens: Some(10),
            block_size: None,
        },
        ..Sample::default()
    };
    let told = Reading {
        ranks: [(None, sample)].into(),
        ..Reading::default()
    };
    member.observe(Source::Scrape, &told, Instant::now());
    assert_eq!(all(&monitor)["thresholds"][0].get("without_source"), None);
    monitor.remove(1);
    let all_three = all(&monitor)["thresholds"][0]["without_source"].clone();
    assert_eq!(
        all_three.as_array().map(Vec::len),
        Some(3),
        "nobody serves it"
    );
}

#[test]
fn a_new_threshold_applies_at_once_to_what_is_in_flight() {
    let (monitor, member) = served();
    let _held = member.started(None, "m", 4 * 16 * 51);
    assert!(!member.busy("m").worker);
    post(
        &monitor,
        r#"{"model":"m","active_decode_blocks_threshold":0.5}"#,
    );
    assert!(member.busy("m").worker);
    post(
        &monitor,
        r#"{"model":"m","active_decode_blocks_threshold":0.51}"#,
    );
    assert!(!member.busy("m").worker);
}

#[test]
fn out_of_range_is_400_with_the_range() {
    let (monitor, _member) = served();
    for (field, said) in [
        (
            r#""active_decode_blocks_threshold":1.5"#,
            "active_decode_blocks_threshold must be between 0.0 and 1.0, got 1.5",
        ),
        (
            r#""active_decode_blocks_threshold":-0.25"#,
            "active_decode_blocks_threshold must be between 0.0 and 1.0, got -0.25",
        ),
        (
            r#""active_prefill_tokens_threshold_frac":-1"#,
            "active_prefill_tokens_threshold_frac must be a finite value greater than or equal to 0.0, got -1",
        ),
        (
            r#""active_prefill_tokens_threshold":18446744073709551615"#,
            "active_prefill_tokens_threshold must be an integer from 0 to 9007199254740992, got 18446744073709551615",
        ),
    ] {
        for model in ["m", "unknown"] {
            let body = format!(r#"{{"model":"{model}",{field}}}"#);
            assert_eq!(refused(&monitor, &body), (400, said.to_owned()));
        }
    }
    let half =
        r#"{"model":"m","active_prefill_tokens_threshold":5,"active_decode_blocks_threshold":2}"#;
    assert_eq!(refused(&monitor, half).0, 400);
    assert!(monitor.thresholds("m").is_empty(), "all or nothing");
}

#[test]
fn bad_json_is_400() {
    let (monitor, _member) = served();
    let huge = r#"{"model":"m","active_prefill_tokens_threshold_frac":1e999}"#;
    let deep = "[".repeat(10_000);
    for body in [
        "",
        "{",
        "model=m",
        r#"{"model":"m"} x"#,
        r#"{"model":}"#,
        huge,
        &deep,
    ] {
        let (status, text) = refused(&monitor, body);
        assert_eq!(status, 400, "{body:.40}: {text}");
    }
    let bytes = b"{\"model\":\"\xff\"}";
    let status = answer(&monitor, &Method::POST, JSON, bytes).status;
    assert_eq!(status, StatusCode::BAD_REQUEST, "invalid UTF-8");
}

#[test]
fn other_shapes_are_422() {
    let (monitor, _member) = served();
    for (body, said) in [
        ("{}", "model"),
        ("[]", "model"),
        (r#"["m", 0.5, 1, 1.0]"#, "object"),
        ("null", "object"),
        ("\"m\"", "object"),
        (r#"{"model":7}"#, "string"),
        (r#"{"model":null}"#, "string"),
        (
            r#"{"model":"m","active_prefill_tokens_threshold":-1}"#,
            "u64",
        ),
        (
            r#"{"model":"m","active_prefill_tokens_threshold":1.5}"#,
            "u64",
        ),
        (
            r#"{"model":"m","active_prefill_tokens_threshold":"9"}"#,
            "u64",
        ),
        (
            r#"{"model":"m","active_prefill_tokens_threshold":18446744073709551616}"#,
            "u64",
        ),
        (
            r#"{"model":"m","active_decode_blocks_threshold":"0.5"}"#,
            "f64",
        ),
        (
            r#"{"model":"m","active_decode_blocks_threshold":true}"#,
            "f64",
        ),
        (r#"{"model":"m","model":"m"}"#, "duplicate"),
        (
            r#"{"model":"m","active_decode_block_threshold":0.5}"#,
            "active_decode_blocks_threshold",
        ),
    ] {
        let (status, text) = refused(&monitor, body);
        assert_eq!(status, 422, "{body}: {text}");
        assert!(text.contains(said), "{body}: {text}");
    }
}

#[test]
fn an_unknown_model_is_404_and_leaves_nothing() {
    let (monitor, _member) = served();
    let body = r#"{"model":"x'\n","active_decode_blocks_threshold":null}"#;
    let said =
        "Model 'x'\n' not found. Thresholds can only be set for models that a worker serves.";
    assert_eq!(refused(&monitor, body), (404, said.to_owned()));
    assert_eq!(all(&monitor)["thresholds"].as_array().unwrap().len(), 2);
}

#[test]
fn only_json_is_taken_and_only_so_much() {
    let (monitor, _member) = served();
    let body = br#"{"model":"m"}"#;
    let status = |content_type, body: &[u8]| {
        let answer = answer(&monitor, &Method::POST, content_type, body);
        if answer.status != StatusCode::OK {
            assert!(answer.body["error"].is_string(), "{}", answer.body);
        }
        answer.status.as_u16()
    };
    for content_type in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/merge-patch+json",
    ] {
        assert_eq!(status(Some(content_type), body), 200, "{content_type}");
    }
    for content_type in [
        "",
        "text/json",
        "application/jsonp",
        "text/plain",
        "multipart/form-data",
    ] {
        assert_eq!(status(Some(content_type), body), 415, "{content_type}");
    }
    assert_eq!(status(None, body), 415);
    assert_eq!(
        status(None, &vec![b' '; MAX_BODY + 1]),
        415,
        "the type is looked at first"
    );
    let mut padded = vec![b' '; MAX_BODY - body.len()];
    padded.extend(body);
    assert_eq!(status(JSON, &padded), 200);
    padded.insert(0, b' ');
    assert_eq!(status(JSON, &padded), 413);
}

#[test]
fn other_methods_are_405() {
    let (monitor, _member) = served();
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::HEAD] {
        let answer = answer(&monitor, &method, JSON, b"");
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert!(answer.body["error"].as_str().unwrap().contains("GET, POST"));
    }
}
