//! The page's routes, before those of a server.
//!
//! | route | answer |
//! | --- | --- |
//! | `GET /tidegate/` | the page |
//! | `GET /tidegate/page.js`, `page.css`, `icon.svg` | what it is made of |
//! | `GET /tidegate/live` | snapshots, as server-sent events |
//! | `GET /` | the page's address, where nobody else has anything to say |
//!
//! Nothing of an engine's is hidden: `GET /` goes where it would go without the
//! page, and only what answers that there is no such thing, or that nobody is
//! there, is replaced. Everything else is below `/tidegate`, which no engine has.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use tokio_util::sync::CancellationToken;

use super::decisions::Decisions;
use super::live::{Live, MOST_VIEWERS, Source};
use crate::server::path::normalise;

/// Where the page is.
pub const PATH: &str = "/tidegate/";

const HTML: &str = include_str!("assets/page.html");
const SCRIPT: &str = include_str!("assets/page.js");
const STYLE: &str = include_str!("assets/page.css");
const ICON: &str = include_str!("assets/icon.svg");

/// The page loads nothing from elsewhere, runs nothing inline, sends nothing, and
/// is in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

type Own = UnsyncBoxBody<Bytes, Infallible>;

/// The page of one server. A cheap clone.
#[derive(Clone, Debug)]
pub(crate) struct Page(Arc<Live>);

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The page's address, if nobody else answers.
    Root,
    /// The address, spelled without its slash.
    Address,
    /// A text of this type.
    Text(&'static str, &'static str),
    Live,
    Nothing,
}

impl Page {
    /// Shows what `source` reads, and `decisions`, until `end`.
    pub(crate) fn new(source: Source, decisions: Arc<Decisions>, end: CancellationToken) -> Self {
        Self(Arc::new(Live::new(source, decisions, end)))
    }

    /// Answers what is asked of the page, if its client may see it, and has `next`
    /// answer everything else. That it is held once, and in place, is why this is no
    /// `async fn`: each client that waits costs its size.
    pub(crate) fn or<I, B, F: Future<Output = Response<B>>>(
        self,
        allowed: bool,
        request: Request<I>,
        next: impl FnOnce(Request<I>) -> F,
    ) -> impl Future<Output = Response<Either<Own, B>>> {
        let asked = match allowed {
            true => asked(request.method(), request.uri().path()),
            false => None,
        };
        match asked {
            None => next(request)
                .map(|answer| answer.map(Either::Right))
                .left_future(),
            Some(Asked::Root) => Box::pin(next(request))
                .map(|answer| match has_nothing(answer.status()) {
                    true => address().map(Either::Left),
                    false => answer.map(Either::Right),
                })
                .left_future()
                .right_future(),
            Some(asked) => ready(self.answer(asked).map(Either::Left))
                .right_future()
                .right_future(),
        }
    }

    fn answer(&self, asked: Asked) -> Response<Own> {
        match asked {
            Asked::Root | Asked::Address => address(),
            Asked::Text(kind, text) => text_of(kind, text),
            Asked::Live => self.live(),
            Asked::Nothing => status(StatusCode::NOT_FOUND),
        }
    }

    fn live(&self) -> Response<Own> {
        let Some(events) = self.0.watch() else {
            let mut answer = status(StatusCode::SERVICE_UNAVAILABLE);
            let said = format!("{MOST_VIEWERS} look at this page already\n");
            *answer.body_mut() = Full::new(Bytes::from(said)).boxed_unsync();
            let headers = answer.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("10"));
            return answer;
        };
        let mut answer = Response::new(StreamBody::new(events).boxed_unsync());
        head(answer.headers_mut(), "text/event-stream");
        answer
    }
}

/// What a request asks of the page, if anything.
fn asked(method: &Method, path: &str) -> Option<Asked> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let parts = normalise(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Some(match parts.as_slice() {
        [] => Asked::Root,
        ["tidegate"] if path.ends_with('/') => Asked::Text("text/html; charset=utf-8", HTML),
        ["tidegate"] => Asked::Address,
        ["tidegate", "page.js"] => Asked::Text("text/javascript; charset=utf-8", SCRIPT),
        ["tidegate", "page.css"] => Asked::Text("text/css; charset=utf-8", STYLE),
        ["tidegate", "icon.svg"] => Asked::Text("image/svg+xml", ICON),
        ["tidegate", "live"] => Asked::Live,
        ["tidegate", ..] => Asked::Nothing,
        _ => return None,
    })
}

/// Whether an answer says that there is no such thing, or nobody.
fn has_nothing(status: StatusCode) -> bool {
    [
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::BAD_GATEWAY,
    ]
    .contains(&status)
}

/// Relative, so that it holds behind a proxy that adds a path.
fn address() -> Response<Own> {
    let mut answer = status(StatusCode::TEMPORARY_REDIRECT);
    let headers = answer.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static("tidegate/"));
    answer
}

fn text_of(kind: &'static str, text: &'static str) -> Response<Own> {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync());
    head(answer.headers_mut(), kind);
    answer
}

fn status(status: StatusCode) -> Response<Own> {
    let mut answer = text_of("text/plain; charset=utf-8", "");
    *answer.status_mut() = status;
    answer
}

fn head(headers: &mut http::HeaderMap, kind: &'static str) {
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        // A restart may bring another version.
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_by_get_is_the_pages() {
        let get = |path: &str| asked(&Method::GET, path);
        assert_eq!(get("/"), Some(Asked::Root));
        assert_eq!(get("/tidegate"), Some(Asked::Address));
        assert!(matches!(
            get("/tidegate/"),
            Some(Asked::Text("text/html; charset=utf-8", _))
        ));
        assert_eq!(get("//tidegate/./live"), Some(Asked::Live));
        assert_eq!(get("/tidegate/other"), Some(Asked::Nothing));
        for path in ["/metrics", "/v1/models", "/tidegate2", "/v1/tidegate/"] {
            assert_eq!(get(path), None, "{path}");
        }
        assert_eq!(asked(&Method::POST, "/tidegate/"), None);
        assert_eq!(asked(&Method::POST, "/"), None);
    }
}
