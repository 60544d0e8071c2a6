//! Answers that the worker gives itself, and the type of every answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use super::told::{Passing, Told};

/// A body of our own, or the engine's passing through, at once or after some news.
pub type Body = Either<Full<Bytes>, Either<Passing, Told>>;

/// An answer to a client.
pub type Answer = Response<Body>;

/// An answer without a body.
pub fn bare(status: StatusCode) -> Answer {
    let mut answer = Response::new(Either::Left(Full::default()));
    *answer.status_mut() = status;
    answer
}

/// Plain text or JSON of our own.
pub fn own(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// JSON of our own.
pub fn json_body(status: StatusCode, body: &Value) -> Answer {
    own(status, "application/json", body.to_string())
}

/// An error in the shape that all of ours have.
pub fn error(status: StatusCode, message: &str) -> Answer {
    json_body(status, &error_body(status, message))
}

/// The body of an error: the members `message`, `type` and `code`, which is the status.
pub fn error_body(status: StatusCode, message: &str) -> Value {
    let kind = status.canonical_reason().unwrap_or("Error");
    json!({ "message": message, "type": kind, "code": status.as_u16() })
}

/// There is nobody who could serve it.
pub fn unavailable(message: &str) -> Box<Answer> {
    Box::new(error(StatusCode::SERVICE_UNAVAILABLE, message))
}

/// The time for draining is up.
pub fn shut_down() -> Answer {
    *unavailable("The worker was shut down before there was an answer")
}
