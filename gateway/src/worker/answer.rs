//! Answers that the worker gives itself, and the type of every answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use super::slot::Slot;
use crate::proxy::paced::Paced;
use crate::proxy::relay::Relay;

/// A body of our own, or the engine's passing through.
pub type Body = Either<Full<Bytes>, Either<Relay<Slot>, Paced<Slot>>>;

/// An answer to a client.
pub type Answer = Response<Body>;

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

/// An error in the shape that all of ours have: the members `message`, `type`
/// and `code`, which is the status.
pub fn error(status: StatusCode, message: &str) -> Answer {
    let kind = status.canonical_reason().unwrap_or("Error");
    let body = json!({ "message": message, "type": kind, "code": status.as_u16() });
    json_body(status, &body)
}
