//! A request's way to the engine, and its answer's way back.

use std::time::Instant;

use http::header::{ACCEPT_ENCODING, EXPECT, HOST};
use http::{Request, Response, StatusCode, Version, request};
use http_body_util::Either;
use hyper::body::Incoming;
use tracing::{debug, warn};

use super::answer::{Answer, error};
use super::shared::Shared;
use super::slot::Slot;
use crate::proxy::engine::Reuse;
use crate::proxy::first_token::Watcher;
use crate::proxy::headers;
use crate::proxy::paced::Paced;
use crate::proxy::relay::Relay;
use crate::proxy::request_body::RequestBody;
use crate::proxy::silence::Silence;
use crate::server::causes::causes;
use crate::server::named::Named;

/// Sends a request on to the engine and its answer back. `slot` is what a gated
/// request holds; it is dropped as soon as the engine is done with it.
pub(super) async fn forward(
    shared: &Shared,
    head: request::Parts,
    mut body: RequestBody,
    mut slot: Option<Slot>,
    named: &Named,
) -> Answer {
    if let (Some(slot), Some(cluster)) = (&mut slot, &shared.cluster) {
        slot.reads(&cluster.prompts, &head.headers);
    }
    let mut silence = shared.engine_idle_timeout.map(Silence::new);
    if let Some(silence) = &silence {
        body.tell(silence.upload());
    }
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.headers_mut() = head.headers;
    let crossing = request.headers_mut();
    crossing.remove(HOST);
    crossing.remove(EXPECT);
    headers::remove_admission(crossing);
    if slot.is_some() {
        // So that there is something to read a first token from.
        crossing.remove(ACCEPT_ENCODING);
    }
    let reuse = match slot {
        Some(_) => shared.reuse,
        None => Reuse::Kept,
    };
    // The socket notices an HTTP/1.1 client that does not read.
    let multiplexed = head.version == Version::HTTP_2;
    match shared.engine.send(request, reuse, silence.as_mut()).await {
        Ok(answer) => relay(shared, answer, slot, silence, multiplexed, named).await,
        Err(why) => {
            drop(slot);
            failed(shared, named, why.status(), &why);
            error(why.status(), &why.to_string())
        }
    }
}

fn failed(shared: &Shared, named: &Named, status: StatusCode, why: &dyn std::error::Error) {
    let (id, traceparent) = (named.id(), named.traceparent());
    let error = causes(why);
    if status.is_client_error() {
        debug!(id, traceparent, error, "a request failed by itself");
        return;
    }
    // While the engine is down, each request would say the same.
    match shared.engine_warnings.due(Instant::now()) {
        Some(left_out) => warn!(
            id,
            traceparent, error, left_out, "no answer from the engine"
        ),
        None => debug!(id, traceparent, error, "no answer from the engine"),
    }
}

async fn relay(
    shared: &Shared,
    answer: Response<Incoming>,
    mut slot: Option<Slot>,
    silence: Option<Silence>,
    multiplexed: bool,
    named: &Named,
) -> Answer {
    let (mut head, body) = answer.into_parts();
    if !head.status.is_success()
        && let Some(slot) = &mut slot
    {
        slot.failed();
    }
    let watcher = match slot {
        Some(_) => Watcher::for_response(&head.headers),
        None => Watcher::for_nothing(),
    };
    headers::remove_hop_by_hop(&mut head.headers);
    headers::remove_admission(&mut head.headers);
    // How the engine spoke says nothing about how the client does.
    head.version = Version::HTTP_11;
    let mut body = Relay::new(body, watcher, slot, silence);
    if let Err(why) = body.begin().await {
        failed(shared, named, why.status(), &why);
        return error(why.status(), &why.to_string());
    }
    let body = if multiplexed {
        Either::Right(Paced::new(body, shared.client_timeout))
    } else {
        Either::Left(body)
    };
    Response::from_parts(head, Either::Right(Either::Left(body)))
}
