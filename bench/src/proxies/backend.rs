//! The server behind every proxy: it answers what an engine answers, and works for
//! none of it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::kind::Pace;

type Answer = BoxBody<Bytes, Infallible>;

/// Listens on a free port and serves until the runtime ends.
///
/// # Errors
/// There is no free port.
pub async fn start(pace: Pace) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(request, pace));
                let serving = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service);
                // A client that leaves is none of our business.
                let _ = serving.await;
            });
        }
    });
    Ok(address)
}

async fn answer(request: Request<Incoming>, pace: Pace) -> Result<Response<Answer>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(whole(StatusCode::BAD_REQUEST, "{}"));
    };
    Ok(match (&head.method, head.uri.path()) {
        (&Method::POST, _) if is_stream(&body.to_bytes()) => stream(pace),
        (&Method::POST, _) => whole(StatusCode::OK, WHOLE),
        (_, "/v1/models") => whole(StatusCode::OK, MODELS),
        (_, "/health") => whole(StatusCode::OK, "{}"),
        _ => whole(StatusCode::NOT_FOUND, "{}"),
    })
}

fn is_stream(body: &[u8]) -> bool {
    let field = br#""stream":true"#;
    body.windows(field.len()).any(|part| part == field)
}

const MODELS: &str =
    r#"{"object":"list","data":[{"id":"bench","object":"model","owned_by":"bench"}]}"#;

const WHOLE: &str = r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"A hop costs a read, a parse, a look at the limits, a write to the engine, and the same way back: some tens of microseconds of a processor's time, most of it spent in the kernel's network code."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":13,"completion_tokens":32,"total_tokens":45}}"#;

const ROLE: &str = r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;

const TOKEN: &str = r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}"#;

const LAST: &str = r#"data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

const DONE: &str = "data: [DONE]";

fn whole(status: StatusCode, text: &'static str) -> Response<Answer> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).boxed();
    typed(status, "application/json", body)
}

fn stream(pace: Pace) -> Response<Answer> {
    let between = pace.between.max(Duration::from_micros(1));
    let mut clock = interval_at(Instant::now() + between, between);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events {
        clock,
        sent: 0,
        tokens: pace.tokens,
    };
    let mut answer = typed(StatusCode::OK, "text/event-stream", events.boxed());
    // nginx then passes on what it has instead of filling a buffer.
    let unbuffered = hyper::header::HeaderValue::from_static("no");
    answer.headers_mut().insert("x-accel-buffering", unbuffered);
    answer
}

fn typed(status: StatusCode, content_type: &'static str, body: Answer) -> Response<Answer> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// A role and the first token at once, then a token at each tick, then the end.
struct Events {
    clock: Interval,
    sent: u32,
    tokens: u32,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.sent > self.tokens {
            return Poll::Ready(None);
        }
        // The first comes at once; a tick of the clock would be up to 1 ms late.
        if self.sent > 0 {
            ready!(self.clock.poll_tick(context));
        }
        self.sent += 1;
        let text = match self.sent {
            1 => format!("{ROLE}\n\n{TOKEN}\n\n"),
            sent if sent <= self.tokens => format!("{TOKEN}\n\n"),
            _ => format!("{LAST}\n\n{DONE}\n\n"),
        };
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}
