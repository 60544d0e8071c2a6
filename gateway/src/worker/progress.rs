//! News for a client that waits, at the gate or in its class, and asked for them: it
//! gives the status line up, gets 200 at once, and comments with its position and
//! expected wait until its turn comes. Then the engine's stream passes as it is. Whatever else comes of the request
//! is one `error` event with the body that an answer would have had.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode, request, response};
use http_body_util::{BodyExt, Either, Limited};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Answer, error_body, shut_down};
use super::forward::forward;
use super::shared::Shared;
use super::told::{Passing, Step, Told};
use super::waiting::Waiting;
use crate::proxy::first_token::has_events;
use crate::proxy::request_body::RequestBody;
use crate::server::named::Named;

/// How often there is news.
const EVERY: Duration = Duration::from_secs(1);

/// How much of an engine's answer that is no stream is told.
const MOST_TOLD: usize = 64 << 10;

/// The answer to a request that waits, all of it: its task goes on where
/// the request was.
pub(super) fn answer(
    shared: &Arc<Shared>,
    head: request::Parts,
    waiting: Waiting,
    body: RequestBody,
    named: &Named,
) -> Answer {
    // One piece of news at a time: a client that does not read misses some.
    let (to, steps) = mpsc::channel(1);
    let task = tokio::spawn({
        let (shared, named) = (Arc::clone(shared), named.clone());
        async move {
            let way = wait(&shared, head, waiting, body, &named, &to);
            let answer = tokio::select! {
                biased;
                answer = way => answer,
                () = shared.cut.cancelled() => shut_down(),
            };
            // Whoever would read it has left otherwise.
            let _ = to.send(last(answer).await).await;
        }
    });
    let body = Told::new(steps, AbortOnDropHandle::new(task));
    let mut answer = Response::new(Either::Right(Either::Right(body)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Tells the news until its turn comes, and sends the request on then.
async fn wait(
    shared: &Shared,
    head: request::Parts,
    mut waiting: Waiting,
    body: RequestBody,
    named: &Named,
    to: &mpsc::Sender<Step>,
) -> Answer {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let slot = loop {
        tokio::select! {
            biased;
            slot = waiting.turn(shared) => break slot,
            _ = ticks.tick() => {
                let _ = to.try_send(Step::Said(news(shared, &waiting)));
            }
        }
    };
    match slot {
        Ok(slot) => forward(shared, head, body, Some(slot), named).await,
        Err(answer) => *answer,
    }
}

/// A comment, which readers of events pass over.
fn news(shared: &Shared, waiting: &Waiting) -> Bytes {
    let (position, lane) = waiting.place();
    let text = match shared.drain.expected_wait(position, lane) {
        Some(seconds) => {
            format!(": queued position={position} expected_wait_seconds={seconds}\n\n")
        }
        None => format!(": queued position={position}\n\n"),
    };
    text.into()
}

/// The last step: the engine's stream, or an event that says what else came.
async fn last(answer: Answer) -> Step {
    let (head, body) = answer.into_parts();
    let said = match body {
        Either::Right(Either::Left(passing)) => {
            if head.status == StatusCode::OK && has_events(&head.headers) {
                return Step::Passes(Box::new(passing));
            }
            engine_said(&head, passing).await
        }
        Either::Left(own) => match own.collect().await {
            Ok(own) => serde_json::from_slice(&own.to_bytes()).unwrap_or_default(),
            Err(never) => match never {},
        },
        // Nobody answers so to a request that was admitted.
        Either::Right(Either::Right(_)) => Value::Null,
    };
    Step::Said(error_event(said))
}

/// The body of an error as an event. Its members are there once more in `error`, where
/// readers of streams look for one.
fn error_event(mut said: Value) -> Bytes {
    let member = |name: &str| said[name].clone();
    said["error"] = json!({
        "message": member("message"),
        "type": member("type"),
        "code": member("code"),
    });
    format!("event: error\ndata: {said}\n\n").into()
}

/// An engine's answer that is no stream, as an error of ours with as much of it as is
/// told, in `details`.
async fn engine_said(head: &response::Parts, body: Passing) -> Value {
    let status = head.status;
    let failed = status.is_client_error() || status.is_server_error();
    let mut said = if failed {
        error_body(status, &format!("The engine answered {status}"))
    } else {
        let message = format!("The engine answered {status} without a stream of events");
        error_body(StatusCode::BAD_GATEWAY, &message)
    };
    let kind = head.headers.get(CONTENT_TYPE);
    let body = match Limited::new(body, MOST_TOLD).collect().await {
        Ok(body) => {
            let bytes = body.to_bytes();
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into())
        }
        // Too long, or broken off.
        Err(_) => Value::Null,
    };
    said["details"] = json!({
        "status": status.as_u16(),
        "content_type": kind.and_then(|kind| kind.to_str().ok()),
        "body": body,
    });
    said
}
