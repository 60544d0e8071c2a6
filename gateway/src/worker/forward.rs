//! A request's way: its route, the gate, the engine, and back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ACCEPT_ENCODING, EXPECT, HOST, HeaderValue};
use http::{Request, Response, StatusCode, Version, request};
use http_body_util::{BodyExt, Either};
use hyper::body::Incoming;
use tidegate::{AdmissionOwned, Rejection};
use tracing::debug;

use super::answer::{Answer, error};
use super::own;
use super::refusal::refusal;
use super::routes::Route;
use super::shared::Shared;
use super::slot::Slot;
use crate::proxy::body::{Relay, RequestBody};
use crate::proxy::first_token::Watcher;
use crate::proxy::headers;
use crate::proxy::silence::Silence;

/// How much of a refused request's body is read and thrown away, and for how
/// long, so that its client gets to read the answer.
const DISCARD_BYTES: usize = 1 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Answers one request. Dropping the future, which is what happens when the
/// client leaves, cancels the request wherever it is.
pub(super) async fn handle(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let id = headers::request_id(request.headers_mut());
    let route = shared.routes.of(request.method(), request.uri());
    let mut answer = match route {
        Route::Metrics => own::metrics(&shared),
        Route::Health => own::health(),
        Route::Ready => own::ready(&shared).await,
        Route::Gated => gated(&shared, request, &id).await,
        Route::Open => {
            let (head, body) = request.into_parts();
            forward(&shared, head, RequestBody::new(body), None).await
        }
    };
    debug!(?id, ?route, status = answer.status().as_u16(), "answered");
    answer
        .headers_mut()
        .entry(headers::REQUEST_ID)
        .or_insert(id);
    Ok(answer)
}

async fn gated(shared: &Shared, request: Request<Incoming>, id: &HeaderValue) -> Answer {
    let (head, body) = request.into_parts();
    debug!(
        ?id,
        method = %head.method,
        path = head.uri.path(),
        traceparent = ?head.headers.get("traceparent"),
        "asks to enter"
    );
    let mut body = RequestBody::new(body);
    // A client that waits for leave to send its body gets it when admitted.
    let expects = head.headers.contains_key(EXPECT);
    match admit(shared, &head, &mut body, expects).await {
        Ok(slot) => forward(shared, head, body, Some(slot)).await,
        Err(answer) => {
            if !expects {
                discard(body);
            }
            *answer
        }
    }
}

/// Asks the gate, and waits for it. The body is read meanwhile, within the
/// budget: the sooner it is here, the less an admitted request waits for it, and
/// one that makes no sense gives its place up.
async fn admit(
    shared: &Shared,
    head: &request::Parts,
    body: &mut RequestBody,
    expects: bool,
) -> Result<Slot, Box<Answer>> {
    if shared.is_draining() {
        return Err(unavailable("The worker is shutting down"));
    }
    let rank = headers::rank(&head.headers)
        .map_err(|why| Box::new(error(StatusCode::BAD_REQUEST, &why.to_string())))?;
    let admission = shared
        .gate
        .request_owned(rank)
        .map_err(|rejection| refused(shared, &rejection))?;
    let permit = match admission {
        AdmissionOwned::Admitted(permit) => permit,
        AdmissionOwned::Queued(ticket) => {
            let since = Instant::now();
            let permit = tokio::select! {
                biased;
                permit = ticket => permit,
                why = body.read_ahead(&shared.budget), if !expects => {
                    debug!(%why, "a queued request's body broke off");
                    let message = "The request body broke off";
                    return Err(Box::new(error(StatusCode::BAD_REQUEST, message)));
                }
            };
            let permit = permit.map_err(|why| refused(shared, &why.into()))?;
            shared.metrics.waited(permit.lane(), since.elapsed());
            permit
        }
    };
    Ok(Slot::new(permit, Arc::clone(&shared.drain)))
}

fn refused(shared: &Shared, rejection: &Rejection) -> Box<Answer> {
    let Some(overload) = rejection.overload() else {
        return unavailable("The worker has stopped");
    };
    debug!(%rejection, "refused");
    let retry_after = shared.retry_after.then(|| {
        let ahead = overload.counts;
        shared.drain.retry_after(ahead, rand::random())
    });
    Box::new(refusal(shared.overload_status, overload, retry_after))
}

fn unavailable(message: &str) -> Box<Answer> {
    Box::new(error(StatusCode::SERVICE_UNAVAILABLE, message))
}

/// Reads on for a client that is still sending what nobody wants, within
/// bounds. Then the connection closes, or the HTTP/2 stream ends.
fn discard(body: RequestBody) {
    let Some(mut rest) = body.into_rest() else {
        return;
    };
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, async move {
        let mut room = DISCARD_BYTES;
        while let Some(Ok(frame)) = rest.frame().await {
            let len = frame.data_ref().map_or(0, bytes::Bytes::len);
            match room.checked_sub(len) {
                Some(left) => room = left,
                None => return,
            }
        }
    }));
}

/// Sends a request on to the engine and its answer back. `slot` is what a gated
/// request holds; it is dropped as soon as the engine is done with it.
async fn forward(
    shared: &Shared,
    head: request::Parts,
    mut body: RequestBody,
    slot: Option<Slot>,
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
    headers::remove_hop_by_hop(crossing);
    crossing.remove(HOST);
    crossing.remove(EXPECT);
    if slot.is_some() {
        // So that there is something to read a first token from.
        crossing.remove(ACCEPT_ENCODING);
    }
    match shared.engine.send(request, silence.as_mut()).await {
        Ok(answer) => relay(answer, slot, silence).await,
        Err(why) => {
            drop(slot);
            debug!(
                error = &why as &dyn std::error::Error,
                "no answer from the engine"
            );
            error(why.status(), &why.to_string())
        }
    }
}

async fn relay(answer: Response<Incoming>, slot: Option<Slot>, silence: Option<Silence>) -> Answer {
    let (mut head, body) = answer.into_parts();
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
        debug!(
            error = &why as &dyn std::error::Error,
            "no body from the engine"
        );
        return error(why.status(), &why.to_string());
    }
    Response::from_parts(head, Either::Right(body))
}
