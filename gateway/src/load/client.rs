//! One request over HTTP, and how it ended.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client as HyperClient, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use thiserror::Error;
use tokio::time::Instant;

use super::planned::Planned;

/// A server that load can be sent to, such as `http://127.0.0.1:8100`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    base: String,
}

/// A URL that load cannot be sent to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no URL to send load to: write one such as http://127.0.0.1:8100")]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let refused = || TargetError(text.to_owned());
        let uri: Uri = text.trim().parse().map_err(|_| refused())?;
        let plain = uri.scheme_str() == Some("http") && uri.host().is_some_and(|h| !h.is_empty());
        if !plain || uri.query().is_some() {
            return Err(refused());
        }
        Ok(Target {
            base: text.trim().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// Who refused a request, from the answer's `x-admission-scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusedBy {
    /// The worker has no room for anyone.
    Worker,
    /// The rank that the request named has no room; others may.
    Rank,
    /// The policy, for the request's class.
    Class,
    /// An overload answer without a scope: whoever stands before the workers.
    Unscoped,
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusedBy::Worker => "worker is full",
            RefusedBy::Rank => "rank is full",
            RefusedBy::Class => "class",
            RefusedBy::Unscoped => "no scope given",
        })
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Answered to the end.
    Ok,
    /// Refused for lack of room.
    Refused(RefusedBy),
    /// Anything else that is not an answer; one of a few short texts.
    Failed(String),
    /// The client left first.
    Left,
}

/// An HTTP client that sends planned requests. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: HyperClient<HttpConnector, Full<Bytes>>,
    model: String,
    in_full: bool,
    class: Option<HeaderValue>,
}

/// Four bytes, which whoever estimates takes for a token.
const TOKEN: &str = "tide";

impl Client {
    /// A client that asks for this model.
    pub fn new(model: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(Duration::from_secs(5)));
        let http = HyperClient::builder(TokioExecutor::new()).build(connector);
        Client {
            http,
            model: model.to_owned(),
            in_full: false,
            class: None,
        }
    }

    /// Sends prompts in full from now on, for servers that look at them.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        self.in_full = true;
        self
    }

    /// Says from now on that its requests are of this class. A name that cannot stand in a
    /// header is not said.
    #[must_use]
    pub fn of_class(mut self, name: &str) -> Self {
        self.class = HeaderValue::from_str(name).ok();
        self
    }

    /// Sends one request and reads its answer to the end. Latency counts from
    /// `intended`, which may lie in the past.
    pub async fn send(
        &self,
        target: &Target,
        planned: &Planned,
        intended: Instant,
    ) -> (Outcome, Option<Duration>) {
        let mut first_token = None;
        let answer = self.answer(target, planned, intended, &mut first_token);
        let outcome = match planned.leaves_after {
            Some(patience) => tokio::time::timeout_at(intended + patience, answer)
                .await
                .unwrap_or(Outcome::Left),
            None => answer.await,
        };
        (outcome, first_token)
    }

    async fn answer(
        &self,
        target: &Target,
        planned: &Planned,
        intended: Instant,
        first_token: &mut Option<Duration>,
    ) -> Outcome {
        let request = match self.request(target, planned) {
            Ok(request) => request,
            Err(error) => return Outcome::Failed(format!("request: {error}")),
        };
        let response = match self.http.request(request).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Outcome::Failed("no connection".into()),
            Err(_) => return Outcome::Failed("connection lost before an answer".into()),
        };
        if response.status() != StatusCode::OK {
            let outcome = not_ok(response.status(), response.headers());
            // Read to the end, so that the connection can serve another request.
            let _ = response.into_body().collect().await;
            return outcome;
        }
        read_stream(response, || *first_token = Some(intended.elapsed())).await
    }

    /// A streaming chat request. The simulated engine takes the lengths from
    /// the headers, so that prompts need not be sent; a real one is bounded by
    /// `max_tokens` all the same.
    fn request(&self, target: &Target, planned: &Planned) -> http::Result<Request<Full<Bytes>>> {
        let prompt = match self.in_full {
            true => TOKEN.repeat(planned.prompt_tokens as usize),
            false => "Tell me about the tide.".to_owned(),
        };
        let body = serde_json::json!({
            "model": self.model,
            "stream": true,
            "max_tokens": planned.output_tokens,
            "messages": [{ "role": "user", "content": prompt }],
        });
        let mut request = Request::post(format!("{target}/v1/chat/completions"))
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-sim-prompt-tokens", planned.prompt_tokens)
            .header("x-sim-output-tokens", planned.output_tokens);
        if let Some(rank) = planned.rank {
            request = request.header("x-data-parallel-rank", rank);
        }
        if let Some(class) = &self.class {
            request = request.header("x-slo-class", class);
        }
        request.body(Full::new(Bytes::from(body.to_string())))
    }
}

/// What an answer other than 200 means.
fn not_ok(status: StatusCode, headers: &HeaderMap) -> Outcome {
    let by = match headers
        .get("x-admission-scope")
        .map(|scope| scope.as_bytes())
    {
        Some(b"worker") => RefusedBy::Worker,
        Some(b"rank") => RefusedBy::Rank,
        Some(b"class") => RefusedBy::Class,
        _ if status.as_u16() == 529 => RefusedBy::Unscoped,
        _ => return Outcome::Failed(format!("status {}", status.as_u16())),
    };
    Outcome::Refused(by)
}

/// Reads server-sent events up to `[DONE]` and calls `on_token` at the first
/// one that carries generated text.
async fn read_stream(response: Response<Incoming>, on_token: impl FnOnce()) -> Outcome {
    let mut on_token = Some(on_token);
    let mut events = BodyDataStream::new(response.into_body()).eventsource();
    while let Some(event) = events.next().await {
        let Ok(event) = event else {
            return Outcome::Failed("stream cut".into());
        };
        if event.data == "[DONE]" {
            return Outcome::Ok;
        }
        if event.event == "error" {
            return Outcome::Failed("error in the stream".into());
        }
        if on_token.is_some() && has_text(&event.data) {
            on_token.take().into_iter().for_each(|tell| tell());
        }
    }
    Outcome::Failed("stream ended without [DONE]".into())
}

/// Whether a chunk carries generated text: of an answer or of reasoning.
fn has_text(data: &str) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        #[serde(default)]
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        #[serde(default)]
        delta: Delta,
        text: Option<String>,
    }
    #[derive(Deserialize, Default)]
    struct Delta {
        content: Option<String>,
        reasoning_content: Option<String>,
    }
    let Ok(chunk) = serde_json::from_str::<Chunk>(data) else {
        return false;
    };
    chunk.choices.iter().any(|choice| {
        [
            &choice.text,
            &choice.delta.content,
            &choice.delta.reasoning_content,
        ]
        .into_iter()
        .flatten()
        .any(|text| !text.is_empty())
    })
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
