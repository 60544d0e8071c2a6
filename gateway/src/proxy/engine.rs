//! The connections to the engine.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;

pub use super::engine_url::EngineUrl;
use super::headers::{Unmet, unmet};
use super::request_body::{BodyError, RequestBody};
use super::silence::Silence;

/// How long a connection may take to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// When a quiet connection is asked whether the engine's machine is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The most that is read from an engine at a time, and the largest head.
const READ_BYTES: usize = 64 << 10;

/// How long an unused connection is kept: less than the 5 s after which common
/// engine servers close theirs, so that none is used while it is being closed.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// The largest answer that is read whole, in bytes.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// What most of our questions ask for.
const JSON: &str = "application/json";

/// Why there is no answer from the engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// No connection could be made.
    #[error("could not connect to the engine")]
    Connect(#[source] legacy::Error),
    /// The connection ended before an answer came.
    #[error("the engine closed the connection before it answered")]
    Closed(#[source] legacy::Error),
    /// What came is no answer in HTTP.
    #[error("the engine's answer is not HTTP as it should be")]
    Garbled(#[source] legacy::Error),
    /// It speaks another protocol from here on, which nobody asked for.
    #[error("the engine switched protocols without being asked to")]
    Switched,
    /// Its body comes in a coding that nobody asked for and nobody could read.
    #[error("the engine's answer has a transfer coding that was not asked for")]
    Coding,
    /// No answer within this time.
    #[error("the engine sent nothing for {0:?}")]
    Timeout(Duration),
    /// The request's target cannot be asked of an engine.
    #[error("the request's target is not a path")]
    Target,
    /// The client's own body failed on the way.
    #[error(transparent)]
    Client(BodyError),
    /// The answer to one of our own questions was not usable.
    #[error("the engine's answer was not usable: {0}")]
    Answer(String),
}

impl EngineError {
    /// The status that tells a client: 502, 504, or that of its own mistake.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Connect(_)
            | Self::Closed(_)
            | Self::Garbled(_)
            | Self::Switched
            | Self::Coding
            | Self::Answer(_) => StatusCode::BAD_GATEWAY,
            Self::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Target => StatusCode::BAD_REQUEST,
            Self::Client(why) => why.status(),
        }
    }
}

/// Connections to one engine. A cheap clone.
#[derive(Clone, Debug)]
pub struct Engine {
    url: EngineUrl,
    /// Connections that are kept and used again.
    kept: Connections,
    /// A new one for each request.
    fresh: Connections,
}

/// Which connection a request goes out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// One that is there already, if there is one.
    Kept,
    /// One of its own. Some engines close a connection behind a stream without
    /// having said so, which is when the gate lets the next request out: on that
    /// connection it would be lost, and it may not be sent twice.
    Never,
}

/// TLS wants the system's certificates, which a plain engine does not need.
#[derive(Clone, Debug)]
enum Connections {
    Plain(Client<HttpConnector, RequestBody>),
    Tls(Client<HttpsConnector<HttpConnector>, RequestBody>),
}

impl Engine {
    /// Prepares connections; opens none.
    ///
    /// # Errors
    /// For `https`, when the system's trusted certificates cannot be read.
    pub fn new(url: EngineUrl) -> io::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.enforce_http(false);
        let mut kept = Client::builder(TokioExecutor::new());
        kept.pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .http1_max_buf_size(READ_BYTES);
        let mut fresh = kept.clone();
        fresh.pool_max_idle_per_host(0);
        let (kept, fresh) = if url.scheme == Scheme::HTTPS {
            let tls = HttpsConnectorBuilder::new()
                .with_native_roots()?
                .https_only()
                .enable_http1()
                .wrap_connector(tcp);
            let kept = Connections::Tls(kept.build(tls.clone()));
            (kept, Connections::Tls(fresh.build(tls)))
        } else {
            let kept = Connections::Plain(kept.build(tcp.clone()));
            (kept, Connections::Plain(fresh.build(tcp)))
        };
        Ok(Self { url, kept, fresh })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &EngineUrl {
        &self.url
    }

    /// Sends a request whose URI is the client's own. Waits for the head of the
    /// answer, until the silence is too long if there is a limit to it. Dropping
    /// the future closes the connection.
    ///
    /// # Errors
    /// When there is no answer, and for `CONNECT`, which asks for a tunnel.
    pub async fn send(
        &self,
        mut request: Request<RequestBody>,
        reuse: Reuse,
        silence: Option<&mut Silence>,
    ) -> Result<Response<Incoming>, EngineError> {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        let target = self.url.route(path).ok_or(EngineError::Target)?;
        if request.method() == Method::CONNECT {
            return Err(EngineError::Target);
        }
        *request.uri_mut() = target;
        let connections = match reuse {
            Reuse::Kept => &self.kept,
            Reuse::Never => {
                // So that the engine closes first, and keeps what a closed
                // connection leaves behind for a minute.
                let close = HeaderValue::from_static("close");
                request.headers_mut().insert(header::CONNECTION, close);
                &self.fresh
            }
        };
        let answer = match connections {
            Connections::Plain(client) => client.request(request),
            Connections::Tls(client) => client.request(request),
        };
        let answer = match silence {
            None => answer.await,
            Some(silence) => tokio::select! {
                answer = answer => answer,
                time = silence.too_long() => return Err(EngineError::Timeout(time)),
            },
        };
        match answer {
            // Upgrades are not passed on, so that none can be granted.
            Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Err(EngineError::Switched)
            }
            Ok(answer) if unmet(answer.headers()) == Some(Unmet::Coding) => {
                Err(EngineError::Coding)
            }
            Ok(answer) => Ok(answer),
            Err(error) if error.is_connect() => Err(EngineError::Connect(error)),
            Err(error) => Err(if let Some(why) = cause::<BodyError>(&error) {
                EngineError::Client(*why)
            } else if cause(&error).is_some_and(hyper::Error::is_parse) {
                EngineError::Garbled(error)
            } else {
                EngineError::Closed(error)
            }),
        }
    }

    /// Asks for `path` and gives the status of the answer.
    ///
    /// # Errors
    /// When there is no answer within `timeout`.
    pub async fn probe(&self, path: &str, timeout: Duration) -> Result<StatusCode, EngineError> {
        let answer = self.ask(path, JSON, timeout).await?;
        Ok(answer.status())
    }

    /// Asks for `path` and reads the JSON answer; `None` if the engine has no
    /// such page.
    ///
    /// # Errors
    /// When there is no answer within `timeout`, or one that is not JSON or over
    /// 4 MiB.
    pub async fn json(
        &self,
        path: &str,
        timeout: Duration,
    ) -> Result<Option<serde_json::Value>, EngineError> {
        let (status, body) = self.page(path, JSON, timeout).await?;
        if !status.is_success() {
            return Ok(None);
        }
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| EngineError::Answer(error.to_string()))
    }

    /// Asks for `path` and reads the answer whole, of whatever status.
    ///
    /// # Errors
    /// When head or body do not come within `timeout`, or the body is over 4 MiB.
    pub async fn page(
        &self,
        path: &str,
        accept: &'static str,
        timeout: Duration,
    ) -> Result<(StatusCode, Bytes), EngineError> {
        let answer = self.ask(path, accept, timeout).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_PAGE_BYTES).collect();
        let body = tokio::time::timeout(timeout, body)
            .await
            .map_err(|_| EngineError::Timeout(timeout))?
            .map_err(|error| EngineError::Answer(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    async fn ask(
        &self,
        path: &str,
        accept: &'static str,
        timeout: Duration,
    ) -> Result<Response<Incoming>, EngineError> {
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(RequestBody::empty())
            .map_err(|_| EngineError::Target)?;
        self.send(request, Reuse::Kept, Some(&mut Silence::new(timeout)))
            .await
    }
}

/// An error of this type behind another.
fn cause<E: Error + 'static>(error: &legacy::Error) -> Option<&E> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(why) = error.downcast_ref() {
            return Some(why);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_engine_needs_the_systems_certificates_and_nothing_else() {
        // Whether this machine has any is not ours to say.
        let url: EngineUrl = "https://localhost".parse().unwrap();
        if let Err(error) = Engine::new(url) {
            assert!(!error.to_string().is_empty());
        }
    }
}
