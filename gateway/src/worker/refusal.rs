//! How a refusal looks to a client.

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json};
use tidegate::{Overload, Scope};

use super::answer::Body;
use crate::policy::Refused;
use crate::proxy::headers::{ADMISSION_RANK, ADMISSION_SCOPE};
use crate::server::answer::{bare, json_body};

/// The status of a refusal unless another is configured.
pub const OVERLOADED: u16 = 529;

/// The answer to a request that the gate refused. `retry_after` is in seconds.
///
/// The body's members are what Dynamo's clients know; `details` says which
/// limit stood in the way and how full its place was. With a status that has no body
/// the headers say all.
pub fn refusal(
    status: StatusCode,
    overload: &Overload,
    retry_after: Option<u64>,
) -> Response<Body> {
    let (scope, rank) = match overload.scope {
        Scope::Worker => ("worker", None),
        Scope::Rank(rank) => ("rank", Some(rank)),
    };
    let mut details = json!({
        "scope": scope,
        "limit": overload.limit.to_string(),
        "limit_of": if overload.of_worker { "worker" } else { "rank" },
        "value": overload.value,
        "running": overload.counts.running,
        "waiting": overload.counts.waiting,
        "queued": overload.counts.queued,
        // Capacity comes back, so a later try can succeed.
        "retryable": true,
    });
    if let Some(rank) = rank {
        details["rank"] = rank.into();
    }
    let mut answer = overloaded(status, scope, details, retry_after);
    if let Some(rank) = rank {
        answer.headers_mut().insert(ADMISSION_RANK, rank.into());
    }
    answer
}

/// The answer to a request that the policy refused.
pub(crate) fn class_refusal<P>(
    status: StatusCode,
    refused: &Refused,
    retry_after: Option<u64>,
) -> Response<Either<Full<Bytes>, P>> {
    let Refused { class, reason, .. } = refused;
    let details = json!({
        "scope": "class",
        "class": class,
        "reason": reason.name(),
        "retryable": reason.may_pass(),
    });
    let retry_after = retry_after.filter(|_| reason.may_pass());
    overloaded(status, "class", details, retry_after)
}

fn overloaded<P>(
    status: StatusCode,
    scope: &'static str,
    mut details: Value,
    retry_after: Option<u64>,
) -> Response<Either<Full<Bytes>, P>> {
    if let Some(seconds) = retry_after {
        details["retry_after_seconds"] = seconds.into();
    }
    let body = json!({
        "message": "Service temporarily overloaded",
        "type": "Overloaded",
        "code": status.as_u16(),
        "details": details,
    });
    let mut answer = if has_body(status) {
        json_body(status, &body)
    } else {
        bare(status)
    };
    let headers = answer.headers_mut();
    headers.insert(ADMISSION_SCOPE, HeaderValue::from_static(scope));
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// Whether HTTP lets an answer with this status have a body.
#[must_use]
pub fn has_body(status: StatusCode) -> bool {
    ![
        StatusCode::NO_CONTENT,
        StatusCode::RESET_CONTENT,
        StatusCode::NOT_MODIFIED,
    ]
    .contains(&status)
}

/// Reads a status for refusals: an integer from 200 to 999, with or without
/// space around it.
///
/// # Errors
/// A text that names the range.
pub fn parse_status(text: &str) -> Result<StatusCode, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|code| (200..=999).contains(code))
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or_else(|| "must be a status code from 200 to 999".to_owned())
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tidegate::{Counts, Lane, Limit};
    use tidegate_policy::reason::Reason;

    use super::*;

    fn overload(scope: Scope) -> Overload {
        Overload {
            lane: Lane::Rank(4),
            scope,
            limit: Limit::RequestQueue,
            of_worker: false,
            value: 8,
            counts: Counts {
                running: 2,
                waiting: 1,
                queued: 8,
            },
        }
    }

    async fn body(answer: Response<Body>) -> Value {
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[tokio::test]
    async fn a_rank_refuses_by_name() {
        let status = StatusCode::from_u16(OVERLOADED).unwrap();
        let answer = refusal(status, &overload(Scope::Rank(4)), Some(7));
        assert_eq!(answer.status(), 529);
        assert_eq!(answer.headers()["x-admission-scope"], "rank");
        assert_eq!(answer.headers()["x-admission-rank"], "4");
        assert_eq!(answer.headers()["retry-after"], "7");
        assert_eq!(answer.headers()["content-type"], "application/json");
        let body = body(answer).await;
        assert_eq!(body["message"], "Service temporarily overloaded");
        assert_eq!(body["type"], "Overloaded");
        assert_eq!(body["code"], 529);
        assert_eq!(body["details"]["limit"], "request_queue_limit");
        assert_eq!(body["details"]["value"], 8);
        assert_eq!(body["details"]["queued"], 8);
    }

    #[tokio::test]
    async fn a_worker_refuses_without_a_rank_and_the_code_follows_the_status() {
        let status = parse_status(" 555 ").unwrap();
        let answer = refusal(status, &overload(Scope::Worker), None);
        assert_eq!(answer.headers()["x-admission-scope"], "worker");
        assert!(!answer.headers().contains_key("x-admission-rank"));
        assert!(!answer.headers().contains_key("retry-after"));
        let body = body(answer).await;
        assert_eq!(
            (&body["code"], &body["type"]),
            (&json!(555), &json!("Overloaded"))
        );
    }

    #[tokio::test]
    async fn a_status_without_a_body_leaves_it_to_the_headers() {
        for status in [204, 205, 304] {
            let status = parse_status(&status.to_string()).unwrap();
            let answer = refusal(status, &overload(Scope::Rank(4)), Some(7));
            assert_eq!(answer.headers()["x-admission-rank"], "4");
            assert_eq!(answer.headers()["retry-after"], "7");
            assert!(!answer.headers().contains_key("content-type"));
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(bytes.is_empty(), "{status}");
        }
    }

    #[tokio::test]
    async fn a_class_refuses_for_a_reason_and_says_whether_it_may_pass() {
        let of = |reason| Refused {
            class: "gold".to_owned(),
            reason,
            ahead: 0,
        };
        let status = StatusCode::from_u16(OVERLOADED).unwrap();
        let answer = class_refusal(status, &of(Reason::QueueTimeout), Some(3));
        assert_eq!(answer.headers()["x-admission-scope"], "class");
        assert_eq!(answer.headers()["retry-after"], "3");
        let told = body(answer).await;
        assert_eq!(told["type"], "Overloaded");
        assert_eq!(told["details"]["class"], "gold");
        assert_eq!(told["details"]["reason"], "queue_timeout");
        assert_eq!(told["details"]["retryable"], true);
        let answer = class_refusal(status, &of(Reason::TooLarge), Some(3));
        assert!(!answer.headers().contains_key("retry-after"));
        assert_eq!(body(answer).await["details"]["retryable"], false);
    }

    #[test]
    fn a_status_is_200_to_999() {
        for good in ["200", "529", "999", " 503 "] {
            assert!(parse_status(good).is_ok(), "{good}");
        }
        for bad in ["", "99", "199", "1000", "x", "-529", "529.0", "70000"] {
            assert!(parse_status(bad).is_err(), "{bad}");
        }
    }
}
