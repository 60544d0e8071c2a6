//! The worker's answers: its own, and the engine's while a request holds its slot.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{Either, Full};

use super::told::{Passing, Told};

pub use crate::server::answer::{error, error_body, json_body, own};

/// A body of our own, or the engine's passing through, at once or after some news.
pub type Body = Either<Full<Bytes>, Either<Passing, Told>>;

/// An answer to a client.
pub type Answer = Response<Body>;

/// There is nobody who could serve it.
pub fn unavailable(message: &str) -> Box<Answer> {
    Box::new(error(StatusCode::SERVICE_UNAVAILABLE, message))
}

/// The time for draining is up.
pub fn shut_down() -> Answer {
    *unavailable("The worker was shut down before there was an answer")
}
