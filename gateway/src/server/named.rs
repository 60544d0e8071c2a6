//! What identifies a request in the log.

use http::{HeaderMap, HeaderValue, Response};

use crate::proxy::headers;

/// A request's id, and the trace that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    id: HeaderValue,
    traceparent: Option<HeaderValue>,
}

impl Named {
    /// Of a request with these headers, which get an id if they have none. What is no
    /// id is not logged.
    pub(crate) fn of(headers: &mut HeaderMap) -> Self {
        Self {
            id: headers::request_id(headers),
            traceparent: headers
                .get("traceparent")
                .filter(|value| headers::is_id(value))
                .cloned(),
        }
    }

    /// The id, for the log.
    pub(crate) fn id(&self) -> &str {
        text(&self.id)
    }

    /// The trace, for the log.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_ref().map(text)
    }

    /// Puts the id on the answer, unless whoever gave it did.
    pub(crate) fn put_on<B>(self, answer: &mut Response<B>) {
        answer
            .headers_mut()
            .entry(headers::REQUEST_ID)
            .or_insert(self.id);
    }
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("(not text)")
}
