//! Answers of our own, and the type of every answer.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use crate::proxy::paced::Paced;
use crate::proxy::relay::Relay;

/// A body of our own, or one that passes through, during which a request holds `H`.
pub type Body<H> = Either<Full<Bytes>, Either<Relay<H>, Paced<H>>>;

/// An answer to a client.
pub type Answer<H> = Response<Body<H>>;

/// An answer without a body.
pub fn bare<P>(status: StatusCode) -> Response<Either<Full<Bytes>, P>> {
    let mut answer = Response::new(Either::Left(Full::default()));
    *answer.status_mut() = status;
    answer
}

/// Plain text or JSON of our own, beside what may pass through as `P`.
pub fn own<P>(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Either<Full<Bytes>, P>> {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// JSON of our own.
pub fn json_body<P>(status: StatusCode, body: &Value) -> Response<Either<Full<Bytes>, P>> {
    own(status, "application/json", body.to_string())
}

/// An error in the shape that all of ours have.
pub fn error<P>(status: StatusCode, message: &str) -> Response<Either<Full<Bytes>, P>> {
    json_body(status, &error_body(status, message))
}

/// The body of an error: the members `message`, `type` and `code`, which is the status.
pub fn error_body(status: StatusCode, message: &str) -> Value {
    let kind = status.canonical_reason().unwrap_or("Error");
    json!({ "message": message, "type": kind, "code": status.as_u16() })
}
