//! A request's way: its route, the gate, the engine, and back.

use std::sync::Arc;
use std::time::Instant;

use http::header::{ACCEPT_ENCODING, EXPECT, HOST};
use http::{Request, Response, StatusCode, Version, request};
use http_body_util::Either;
use hyper::body::Incoming;
use tracing::{debug, warn};

use super::answer::{Answer, error};
use super::enter::enter;
use super::own;
use super::routes::Route;
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

/// Answers one request. Dropping the future, which is what happens when the
/// client leaves, cancels the request wherever it is. `trusted` is whether the
/// client's claims are believed.
pub(super) async fn handle(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    trusted: bool,
) -> Answer {
    let crossing = request.headers_mut();
    headers::hide_secrets(crossing);
    headers::remove_hop_by_hop(crossing);
    if !trusted {
        headers::remove_claims(crossing);
    }
    let named = Named::of(crossing);
    let route = shared.routes.of(request.method(), request.uri());
    debug!(
        id = named.id(),
        traceparent = named.traceparent(),
        method = %request.method(),
        path = request.uri().path(),
        ?route,
        "asked"
    );
    let mut answer = match route {
        Route::Own(route) => own::answer(&shared, route).await,
        Route::Gated => pass(&shared, request, &named, Some(trusted)).await,
        Route::Open => pass(&shared, request, &named, None).await,
    };
    debug!(
        id = named.id(),
        status = answer.status().as_u16(),
        "answered"
    );
    answer
        .headers_mut()
        .entry(headers::REQUEST_ID)
        .or_insert(named.into_id());
    answer
}

/// Sends a request on, through the gate if `gated`, which then is whether its
/// client is trusted.
async fn pass(
    shared: &Shared,
    request: Request<Incoming>,
    named: &Named,
    gated: Option<bool>,
) -> Answer {
    let (head, body) = request.into_parts();
    let body = RequestBody::new(body, shared.client_timeout);
    let Some(trusted) = gated else {
        return forward(shared, head, body, None, named).await;
    };
    match enter(shared, &head.headers, body, trusted, named).await {
        Ok((slot, body)) => forward(shared, head, body, Some(slot), named).await,
        Err(answer) => answer,
    }
}

/// Sends a request on to the engine and its answer back. `slot` is what a gated
/// request holds; it is dropped as soon as the engine is done with it.
async fn forward(
    shared: &Shared,
    head: request::Parts,
    mut body: RequestBody,
    slot: Option<Slot>,
    named: &Named,
) -> Answer {
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
    if slot.is_some() {
        // So that there is something to read a first token from.
        crossing.remove(ACCEPT_ENCODING);
    }
    let reuse = match slot {
        Some(_) => Reuse::Never,
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
    Response::from_parts(head, Either::Right(body))
}
