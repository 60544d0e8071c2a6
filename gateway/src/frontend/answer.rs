//! What the frontend says itself. All errors have the members `message`, `type` and
//! `code`, as a worker's; those about the request itself have OpenAI's `error` as well.

use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use super::ask::AskError;
use super::eligible::Counts;
use super::held::Held;
use super::refusal::Refusal;
use crate::proxy::request_body::BodyError;
use crate::server::answer::{self, json_body};

/// An answer to a client.
pub(super) type Answer = answer::Answer<Held>;

/// When a client may come back if no worker said and it is not known how fast requests
/// finish, in seconds: marks are gone by then, and there is a new load sample.
pub(super) const COME_BACK: u64 = 1;

/// The request itself is at fault: OpenAI's clients show its `error`.
pub(super) fn mistake(
    status: StatusCode,
    message: &str,
    param: Option<&str>,
    code: &str,
) -> Answer {
    let kind = status.canonical_reason().unwrap_or("Error");
    let body = json!({
        "message": message,
        "type": kind,
        "code": status.as_u16(),
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": param,
            "code": code,
        },
    });
    json_body(status, &body)
}

/// A body that cannot be read.
pub(super) fn unreadable(why: &AskError) -> Answer {
    mistake(why.status(), &why.to_string(), why.param(), "invalid_body")
}

/// A body that does not come as it should.
pub(super) fn unusable(why: BodyError) -> Answer {
    mistake(why.status(), &why.to_string(), None, "invalid_body")
}

/// A model that no worker serves.
pub(super) fn no_model(model: &str) -> Answer {
    let shown: String = model.chars().take(200).collect();
    mistake(
        StatusCode::NOT_FOUND,
        &format!("Model '{shown}' not found: GET /v1/models lists those that are served"),
        Some("model"),
        "model_not_found",
    )
}

/// Nobody is there.
pub(super) fn unavailable(why: &str) -> Answer {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    answer::error(status, &format!("Service temporarily unavailable: {why}"))
}

/// Every worker that could answer has too much to do.
pub(super) fn overloaded(
    status: StatusCode,
    counts: Counts,
    refusal: Option<&Refusal>,
    retry_after: bool,
) -> Answer {
    let mut details = json!({
        "busy": counts.busy,
        "refused": counts.marked + usize::from(refusal.is_some()),
        "unhealthy": counts.unwell,
        // Capacity comes back, so a later try can succeed.
        "retryable": true,
    });
    if let Some(said) = refusal.and_then(|refusal| refusal.details.as_ref()) {
        details["worker"] = said.clone();
    }
    let told = refusal.and_then(|refusal| refusal.retry_after);
    let seconds = told.unwrap_or(COME_BACK);
    if retry_after {
        details["retry_after_seconds"] = seconds.into();
    }
    let body: Value = json!({
        "message": "Service temporarily overloaded",
        "type": "Overloaded",
        "code": status.as_u16(),
        "details": details,
    });
    let mut answer = json_body(status, &body);
    if retry_after {
        let headers = answer.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}
