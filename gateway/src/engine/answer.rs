//! How an answer leaves: event stream, whole body, or one of the failures.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::connection::Connection;
use super::live::{Event, Request};
use super::misbehave::Misbehave;
use super::wire::{Answer, error_body};

/// Tokens after which misbehaviour in mid-stream strikes.
const MID_STREAM_TOKENS: u32 = 3;
/// From the role-only chunk to the first token.
const ROLE_ONLY_DELAY: Duration = Duration::from_secs(1);
/// Frames between the writer and a slow client.
const FRAMES: usize = 16;

type Frames = mpsc::Sender<Bytes>;

/// A submitted request and all that its answer depends on.
pub(super) struct Call {
    pub request: Request,
    pub answer: Answer,
    pub include_usage: bool,
    pub misbehave: Option<Misbehave>,
    pub connection: Connection,
}

/// A body fed through a channel; the sender sees the client leave.
fn body_channel() -> (Frames, Body) {
    let (tx, rx) = mpsc::channel(FRAMES);
    let frames = stream::unfold(rx, |mut rx| async {
        let frame: Bytes = rx.recv().await?;
        Some((Ok::<_, Infallible>(frame), rx))
    });
    (tx, Body::from_stream(frames))
}

fn event_stream(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, body.into()).into_response()
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn server_error() -> Value {
    error_body("simulated engine failure", "server_error", None, "internal")
}

/// Answers without having submitted the request.
pub(super) async fn without_work(
    misbehave: Misbehave,
    streaming: bool,
    connection: &Connection,
) -> Response {
    let reply = |body| match streaming {
        true => event_stream(body),
        false => json(StatusCode::OK, body),
    };
    match misbehave {
        Misbehave::Http400 => {
            let error = error_body(
                "simulated refusal",
                "invalid_request_error",
                None,
                "bad_request",
            );
            json(StatusCode::BAD_REQUEST, error.to_string())
        }
        Misbehave::Http500 => json(
            StatusCode::INTERNAL_SERVER_ERROR,
            server_error().to_string(),
        ),
        Misbehave::Stall => reply(Body::from_stream(stream::pending::<
            Result<Bytes, Infallible>,
        >())),
        Misbehave::EmptyStream => reply(Body::empty()),
        Misbehave::BadJson if streaming => {
            event_stream(Body::from("data: {\"choices\": [{\"delta\"\n\n"))
        }
        Misbehave::BadJson => json(StatusCode::OK, "{\"choices\": [{\"message\""),
        Misbehave::Reset => connection.reset().await,
        _ => std::future::pending().await,
    }
}

/// Streams the answer as server-sent events.
pub(super) fn streamed(call: Call) -> Response {
    let (frames, body) = body_channel();
    tokio::spawn(async move {
        let gone = frames.clone();
        // Leaving drops the call, and with it the request.
        tokio::select! {
            () = gone.closed() => {}
            _ = write_events(call, &frames) => {}
        }
    });
    event_stream(body)
}

/// `None` when the client has left or the engine stopped.
async fn write_events(mut call: Call, frames: &Frames) -> Option<()> {
    let send = async |data: &Value| frames.send(event(data)).await.ok();
    let mut role = call.answer.role_chunk();
    if call.misbehave == Some(Misbehave::RoleOnly) {
        if let Some(role) = role.take() {
            send(&role).await?;
        }
        sleep(ROLE_ONLY_DELAY).await;
    }
    let mut tokens = 0;
    while call.request.next().await? == Event::Token {
        if let Some(role) = role.take() {
            send(&role).await?;
        }
        let word = call.answer.word();
        send(&call.answer.text_chunk(word)).await?;
        tokens += 1;
        if tokens == MID_STREAM_TOKENS && call.strikes_in_the_middle() {
            break;
        }
    }
    match call.misbehave {
        Some(Misbehave::StallMid) => std::future::pending().await,
        Some(Misbehave::ResetMid) => call.connection.reset().await,
        Some(Misbehave::Truncated) => return None,
        Some(Misbehave::ErrorEvent) => {
            send(&server_error()).await?;
            std::future::pending().await
        }
        _ => {}
    }
    send(&call.answer.finish_chunk()).await?;
    if call.include_usage {
        send(&call.answer.usage_chunk(tokens)).await?;
    }
    frames
        .send(Bytes::from_static(b"data: [DONE]\n\n"))
        .await
        .ok()
}

/// Generates everything, then answers with one JSON body.
pub(super) async fn whole(mut call: Call) -> Response {
    let (mut text, mut tokens) = (String::new(), 0);
    loop {
        match call.request.next().await {
            Some(Event::Token) => {
                text.push_str(call.answer.word());
                tokens += 1;
            }
            Some(Event::Finished) => break,
            None => return stopping(),
        }
    }
    let body = call.answer.whole(&text, tokens);
    finish(body, call.misbehave, call.connection).await
}

/// What a request gets whose engine stops while it waits.
pub(super) fn stopping() -> Response {
    let error = error_body("the engine is stopping", "server_error", None, "stopping");
    json(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

/// Sends a whole body, or fails at it.
pub(super) async fn finish(
    body: Value,
    misbehave: Option<Misbehave>,
    connection: Connection,
) -> Response {
    let text = body.to_string();
    let half = Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]);
    match misbehave {
        Some(Misbehave::RoleOnly) => sleep(ROLE_ONLY_DELAY).await,
        Some(Misbehave::Truncated) => return json(StatusCode::OK, half),
        Some(Misbehave::ErrorEvent) => {
            let error = server_error().to_string();
            return json(StatusCode::INTERNAL_SERVER_ERROR, error);
        }
        Some(kind @ (Misbehave::StallMid | Misbehave::ResetMid)) => {
            let (frames, body) = body_channel();
            tokio::spawn(async move {
                // Fails only if the client has left, which ends the wait too.
                let _ = frames.send(half).await;
                match kind {
                    Misbehave::ResetMid => connection.reset().await,
                    _ => frames.closed().await,
                }
            });
            return json(StatusCode::OK, body);
        }
        _ => {}
    }
    json(StatusCode::OK, text)
}

impl Call {
    fn strikes_in_the_middle(&self) -> bool {
        use Misbehave::*;
        matches!(
            self.misbehave,
            Some(StallMid | ResetMid | Truncated | ErrorEvent)
        )
    }
}
