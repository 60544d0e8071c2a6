//! A request's way in: its route, its body, its model, and the workers that serve it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode, request};
use hyper::body::Incoming;
use tracing::debug;

use super::answer::{self, Answer};
use super::ask::{self, Ask};
use super::attempt::{PROGRESS, Sending};
use super::eligible::Serving;
use super::endpoint::{self, Endpoint, ModelIn};
use super::hold;
use super::own::{self, Own};
use super::record::{Outcome, Record};
use super::shared::Shared;
use super::workers::Wanted;
use crate::policy::asked::{self, Asked};
use crate::proxy::headers;
use crate::proxy::request_body::RequestBody;
use crate::server::answer::error;
use crate::server::discard::discard;
use crate::server::named::Named;
use crate::worker::routes::Route;

/// Answers one request. Dropping the future, which is what happens when the
/// client leaves, cancels the request wherever it is. `trusted` is whether the
/// client's claims are believed.
pub(super) async fn handle(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    trusted: bool,
) -> Answer {
    let crossing = request.headers_mut();
    headers::receive(crossing, trusted);
    let named = Named::of(crossing);
    debug!(
        id = named.id(),
        traceparent = named.traceparent(),
        method = %request.method(),
        path = request.uri().path(),
        "asked"
    );
    let mut answer = place(&shared, request, &named).await;
    debug!(
        id = named.id(),
        status = answer.status().as_u16(),
        "answered"
    );
    named.put_on(&mut answer);
    answer
}

/// Sends a request where its path says.
async fn place(shared: &Shared, request: Request<Incoming>, named: &Named) -> Answer {
    let there =
        |route: &Own| own::is_there(shared, route) && !(shared.own_apart && route.is_operational());
    if let Some(route) = Own::of(request.uri()).filter(there) {
        return own::answer(shared, route, request).await;
    }
    let known = endpoint::of(request.uri()).or_else(|| {
        let extra = shared.routes.of(&Method::POST, request.uri()) == Route::Gated;
        extra.then_some((endpoint::OTHER, None))
    });
    match known {
        None => {
            discard(RequestBody::new(request.into_body(), shared.client_timeout));
            error(StatusCode::NOT_FOUND, "no such route")
        }
        Some(_) if request.method() != Method::POST => own::not_allowed("POST"),
        Some((endpoint, in_path)) => generate(shared, request, endpoint, in_path, named).await,
    }
}

/// A request for a worker.
async fn generate(
    shared: &Shared,
    request: Request<Incoming>,
    endpoint: Endpoint,
    in_path: Option<String>,
    named: &Named,
) -> Answer {
    let record = Arc::new(Record::new(Arc::clone(&shared.metrics), endpoint.label));
    let (head, body) = request.into_parts();
    let body = RequestBody::new(body, shared.client_timeout);
    match ready(shared, head, body, endpoint, in_path, &record, named).await {
        Ok(answer) => answer,
        Err(answer) => {
            record.ends(Outcome::of(answer.status()));
            *answer
        }
    }
}

/// Reads what is to be sent, and sends it. `Err` is the answer to a request that is
/// not sent anywhere.
async fn ready(
    shared: &Shared,
    mut head: request::Parts,
    mut body: RequestBody,
    endpoint: Endpoint,
    in_path: Option<String>,
    record: &Arc<Record>,
    named: &Named,
) -> Result<Answer, Box<Answer>> {
    let checked = check(shared, &head, &mut body);
    let (rank, body) = match checked {
        Ok(rank) => match body.read_whole(&shared.budget).await {
            Ok(()) => (rank, body),
            Err(why) => {
                discard(body);
                return Err(Box::new(answer::unusable(why)));
            }
        },
        Err(answer) => {
            discard(body);
            return Err(answer);
        }
    };
    // The room is given back once an answer has begun: then nothing is sent again.
    let (body, _room) = body.into_read();
    // What a policy asks of the body is read in the same pass.
    let mut asked = shared.policy.is_some().then(Asked::default);
    let also = |name: &str, text: &str| {
        if let Some(asked) = &mut asked {
            asked.member(name, text);
        }
    };
    let ask = ask::read(endpoint.model, in_path, &head.headers, &body, also)
        .map_err(|why| Box::new(answer::unreadable(&why)))?;
    if !ask.is_read {
        asked = asked.map(|_| asked::read(std::iter::once(Bytes::as_ref(&body))));
    }
    let model = model_of(shared, endpoint, ask.model.clone())?;
    let serving = match shared.members.serving(model.as_deref()) {
        Serving::These(serving) => serving,
        Serving::Nobody => {
            return Err(Box::new(answer::no_model(&model.unwrap_or_default())));
        }
        Serving::Untold => return Err(Box::new(answer::unavailable("no worker answers"))),
    };
    if let Some(model) = model.as_deref().filter(|model| shared.members.list(model)) {
        record.is_for(model);
    }
    let progress = head.headers.remove(PROGRESS);
    let Ask { prompt_bytes, .. } = ask;
    let sending = Sending {
        head: &head,
        body: &body,
        model: model.as_deref().unwrap_or_default(),
        prompt_bytes,
        record,
        named,
        progress,
    };
    let wanted = Wanted {
        model: model.clone(),
        rank,
        prompt_bytes,
    };
    Ok(hold::send(shared, &sending, serving, wanted, asked).await)
}

/// What can be said before the body is read: the rank that the client names.
fn check(
    shared: &Shared,
    head: &request::Parts,
    body: &mut RequestBody,
) -> Result<Option<u32>, Box<Answer>> {
    if shared.is_draining() {
        let why = "the frontend is shutting down";
        return Err(Box::new(answer::unavailable(why)));
    }
    body.limit(shared.max_body)
        .map_err(|why| Box::new(answer::unusable(why)))?;
    headers::rank(&head.headers).map_err(|why| {
        let status = StatusCode::BAD_REQUEST;
        let message = why.to_string();
        Box::new(answer::mistake(status, &message, None, "invalid_rank"))
    })
}

/// The model that a request is for. Without one it is the one that is served, if
/// there is just one.
fn model_of(
    shared: &Shared,
    endpoint: Endpoint,
    named: Option<String>,
) -> Result<Option<String>, Box<Answer>> {
    if named.is_some() || endpoint.model != ModelIn::Body {
        return Ok(named);
    }
    shared.members.only_model().map(Some).ok_or_else(|| {
        let message = "the body must name a model: GET /v1/models lists those that are served";
        let status = StatusCode::BAD_REQUEST;
        Box::new(answer::mistake(
            status,
            message,
            Some("model"),
            "missing_model",
        ))
    })
}
