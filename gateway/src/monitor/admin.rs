//! `/busy_threshold`: reads and sets a model's thresholds.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET` | 200, `{"thresholds": [...]}`: all models |
//! | `POST` with a model alone | 200, its thresholds; of an unknown model, nulls |
//! | `POST` with thresholds, some `null` | 200, those set and cleared, all of them told |
//! | the same of an unknown model | 404 |
//! | out of range, or no JSON | 400 |
//! | JSON of another shape | 422 |
//! | another content type than JSON | 415 |
//! | over [`MAX_BODY`] | 413 |
//! | another method | 405 |
//!
//! A threshold that nothing is known to judge by is named in `without_source`. Every
//! error is `{"error": "..."}`.

use http::{Method, StatusCode};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::members::Monitor;
use super::threshold::{Threshold, Thresholds};

/// The path.
pub const PATH: &str = "/busy_threshold";

/// The methods that it has, as a header names them.
pub const ALLOW: &str = "GET, POST";

/// The largest body, in bytes. Whoever reads it may stop one byte later.
pub const MAX_BODY: usize = 64 << 10;

/// An answer: its status, and its JSON body.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Value,
}

/// Answers a request for [`PATH`]. What it sets is in force when this returns.
#[must_use]
pub fn answer(
    monitor: &Monitor,
    method: &Method,
    content_type: Option<&str>,
    body: &[u8],
) -> Answer {
    let done = match *method {
        Method::GET => Ok(all(monitor)),
        Method::POST => post(monitor, content_type, body),
        _ => Err((
            StatusCode::METHOD_NOT_ALLOWED,
            format!("Method {method} is not allowed: {ALLOW}"),
        )),
    };
    match done {
        Ok(body) => Answer {
            status: StatusCode::OK,
            body,
        },
        Err((status, error)) => Answer {
            status,
            body: json!({ "error": error }),
        },
    }
}

/// A body as it is sent. A field that is left out is told from one that is `null`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    model: String,
    #[serde(default, deserialize_with = "given")]
    active_decode_blocks_threshold: Option<Option<f64>>,
    #[serde(default, deserialize_with = "given")]
    active_prefill_tokens_threshold: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    active_prefill_tokens_threshold_frac: Option<Option<f64>>,
}

fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl Change {
    fn is_read(&self) -> bool {
        self.active_decode_blocks_threshold.is_none()
            && self.active_prefill_tokens_threshold.is_none()
            && self.active_prefill_tokens_threshold_frac.is_none()
    }

    fn apply(&self, thresholds: &mut Thresholds) {
        if let Some(value) = self.active_decode_blocks_threshold {
            thresholds.active_decode_blocks = value;
        }
        if let Some(value) = self.active_prefill_tokens_threshold {
            thresholds.active_prefill_tokens = value;
        }
        if let Some(value) = self.active_prefill_tokens_threshold_frac {
            thresholds.active_prefill_tokens_frac = value;
        }
    }
}

type Failed = (StatusCode, String);

fn post(monitor: &Monitor, content_type: Option<&str>, body: &[u8]) -> Result<Value, Failed> {
    if !content_type.is_some_and(is_json) {
        let said = "Expected request with Content-Type application/json";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, said.to_owned()));
    }
    if body.len() > MAX_BODY {
        let said = format!("The body is larger than {MAX_BODY} bytes");
        return Err((StatusCode::PAYLOAD_TOO_LARGE, said));
    }
    let change = read(body)?;
    let mut asked = Thresholds::default();
    change.apply(&mut asked);
    asked
        .check()
        .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let model = &change.model;
    let known = monitor.models().contains(model);
    if change.is_read() {
        let own = monitor.table().own_of(model);
        let default = if known {
            monitor.thresholds(model)
        } else {
            Thresholds::default()
        };
        return Ok(one(monitor, model, own.unwrap_or(default)));
    }
    if !known {
        let said = format!(
            "Model '{model}' not found. Thresholds can only be set for models that a worker serves."
        );
        return Err((StatusCode::NOT_FOUND, said));
    }
    let now = monitor.table().change(model, |own| change.apply(own));
    monitor.tell_news();
    Ok(one(monitor, model, now))
}

/// Bad JSON is told from JSON that is something else.
fn read(body: &[u8]) -> Result<Change, Failed> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        (
            StatusCode::BAD_REQUEST,
            format!("The body is not JSON: {error}"),
        )
    })?;
    let wrong = |why: String| {
        let said = format!("The body is JSON of another shape: {why}");
        (StatusCode::UNPROCESSABLE_ENTITY, said)
    };
    // An array would be taken for the fields in their order.
    if !value.is_object() {
        return Err(wrong(
            "expected an object with a member \"model\"".to_owned(),
        ));
    }
    // From the text once more, so that members that come twice are seen.
    serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let suffixed = kind.starts_with("application/") && kind.ends_with("+json");
    kind == "application/json" || suffixed
}

fn all(monitor: &Monitor) -> Value {
    let mut models = monitor.models();
    models.extend(monitor.table().models());
    let thresholds: Vec<Value> = models
        .iter()
        .map(|model| one(monitor, model, monitor.thresholds(model)))
        .collect();
    json!({ "thresholds": thresholds })
}

fn one(monitor: &Monitor, model: &str, thresholds: Thresholds) -> Value {
    let mut shown = json!({
        "model": model,
        Threshold::DecodeBlocks.name(): thresholds.active_decode_blocks,
        Threshold::PrefillTokens.name(): thresholds.active_prefill_tokens,
        Threshold::PrefillTokensFrac.name(): thresholds.active_prefill_tokens_frac,
    });
    let missing = monitor.without_source(model, &thresholds);
    if !missing.is_empty() {
        let names: Vec<&str> = missing.into_iter().map(Threshold::name).collect();
        shown["without_source"] = json!(names);
    }
    shown
}
