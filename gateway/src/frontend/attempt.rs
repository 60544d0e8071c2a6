//! One request, sent to one worker once.
//!
//! Nothing of an answer reaches the client before its first byte is here, so that a
//! worker that dies until then has cost the client nothing but time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version, request};
use http_body_util::{BodyExt, Either, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::answer::Answer;
use super::held::{Held, Hop};
use super::hops::Ended;
use super::member::Member;
use super::record::{Outcome, Record};
use super::refusal::Refusal;
use super::shared::Shared;
use super::tokens::Tokens;
use super::workers::Reserved;
use crate::proxy::engine::{EngineError, Reuse};
use crate::proxy::first_token::Watcher;
use crate::proxy::headers;
use crate::proxy::paced::Paced;
use crate::proxy::relay::{Relay, RelayError};
use crate::proxy::request_body::RequestBody;
use crate::proxy::silence::Silence;
use crate::server::answer::{error, own};
use crate::server::causes::causes;
use crate::server::named::Named;

/// Tells the worker which rank was chosen.
const RANK: HeaderName = HeaderName::from_static("x-data-parallel-rank");

/// Asks a worker to tell a queued client how it stands, which costs the status line.
pub(super) const PROGRESS: HeaderName = HeaderName::from_static("x-admission-progress");

/// What is read of an answer that is not passed on at once.
const SHORT_BYTES: usize = 64 << 10;

/// How long is waited for the rest of a failure.
const FAILURE_TIME: Duration = Duration::from_secs(2);

/// The same for a refusal, whose head says enough: another worker may have room, and
/// the mark of this one lasts for a second.
const REFUSAL_TIME: Duration = Duration::from_millis(250);

/// A request that may be sent more than once.
pub(super) struct Sending<'a> {
    pub(super) head: &'a request::Parts,
    pub(super) body: &'a Bytes,
    /// The model, for the load's accounting.
    pub(super) model: &'a str,
    pub(super) prompt_bytes: u64,
    pub(super) record: &'a Arc<Record>,
    pub(super) named: &'a Named,
    /// `x-admission-progress`, if the client may ask for it and did.
    pub(super) progress: Option<HeaderValue>,
}

/// Where one try goes.
pub(super) struct Hand {
    pub(super) member: Arc<Member>,
    /// The rank that was chosen for it; `None` leaves the client's word.
    pub(super) rank: Option<u32>,
    pub(super) reuse: Reuse,
    /// No other try follows.
    pub(super) last: bool,
    /// The place that is kept for it there, if one is.
    pub(super) reserved: Option<Reserved>,
}

/// How a try ended for the client.
#[derive(Debug)]
pub(super) enum Tried {
    /// With this answer, which has begun.
    Answered(Answer),
    /// The worker has no room.
    Refused(Refusal),
    /// No connection, nothing sent.
    Unreachable,
    /// The worker has failed or says that it cannot: what to say if there is nobody else.
    Failed {
        answer: Answer,
        /// The connection ended without an answer: it may have been an old one.
        closed: bool,
    },
}

/// Sends a request to a worker, and waits for the first byte of the answer. Dropping
/// the future closes the connection.
pub(super) async fn attempt(shared: &Shared, sending: &Sending<'_>, mut hand: Hand) -> Tried {
    let mut reserved = hand.reserved.take();
    let member = &hand.member;
    let rank = hand.rank.or_else(|| named_rank(&sending.head.headers));
    let load = reserved.as_mut().and_then(|reserved| reserved.load.take());
    let load = load.unwrap_or_else(|| {
        let watched = &member.watched;
        watched.started(rank, sending.model, sending.prompt_bytes)
    });
    let mut hop = Hop::new(Arc::clone(member));
    let mut silence = shared.worker_idle_timeout.map(Silence::new);
    let request = request(sending, &hand);
    let answer = match member
        .http
        .send(request, hand.reuse, silence.as_mut())
        .await
    {
        Ok(answer) => answer,
        Err(why) => {
            drop(load);
            return unanswered(shared, sending, member, hop, &why);
        }
    };
    if let Some(refusal) = Refusal::of(answer.headers()) {
        hop.ends(refusal.ended());
        drop(load);
        member.refused(refusal.scope);
        debug!(id = sending.named.id(), worker = member.id, scope = ?refusal.scope, "refused");
        let body = short(answer.into_body(), REFUSAL_TIME).await;
        return Tried::Refused(refusal.with(&body.unwrap_or_default()));
    }
    if [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE].contains(&answer.status()) {
        hop.ends(Ended::Unavailable);
        drop(load);
        member.recheck.notify_one();
        return unavailable(sending, member, answer).await;
    }
    if let Some(reserved) = reserved {
        reserved.answered();
    }
    let held = Held {
        load,
        hop,
        record: Arc::clone(sending.record),
        whole: Outcome::of(answer.status()),
        tokens: Tokens::default(),
        events: 0,
    };
    relay(shared, sending, member, answer, held, silence).await
}

fn named_rank(headers: &HeaderMap) -> Option<u32> {
    headers::rank(headers).ok().flatten()
}

fn request(sending: &Sending<'_>, hand: &Hand) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::of(sending.body.clone()));
    *request.method_mut() = sending.head.method.clone();
    *request.uri_mut() = sending.head.uri.clone();
    let mut crossing = sending.head.headers.clone();
    for name in [HOST, EXPECT, CONTENT_LENGTH, ACCEPT_ENCODING] {
        crossing.remove(name);
    }
    headers::remove_admission(&mut crossing);
    if let Some(rank) = hand.rank {
        crossing.insert(RANK, rank.into());
    }
    if let Some(progress) = sending.progress.clone().filter(|_| hand.last) {
        crossing.insert(PROGRESS, progress);
    }
    *request.headers_mut() = crossing;
    request
}

/// What no answer means.
fn unanswered(
    shared: &Shared,
    sending: &Sending<'_>,
    member: &Member,
    mut hop: Hop,
    why: &EngineError,
) -> Tried {
    failed(shared, sending, member, why);
    if let EngineError::Connect(_) = why {
        hop.ends(Ended::Unreachable);
        if member.unreachable() {
            warn!(worker = member.id, url = %member.url(), "a worker cannot be reached: left out");
        }
        return Tried::Unreachable;
    }
    hop.ends(Ended::Failed);
    let answer = error(why.status(), &said(why));
    match why {
        // It may be at work on it still, or is not to blame.
        EngineError::Timeout(_) | EngineError::Target | EngineError::Client(_) => {
            sending.record.ends(Outcome::of(why.status()));
            Tried::Answered(answer)
        }
        _ => {
            member.recheck.notify_one();
            let closed = matches!(why, EngineError::Closed(_));
            Tried::Failed { answer, closed }
        }
    }
}

/// Reads an answer that is only passed on if there is no better one.
async fn unavailable(sending: &Sending<'_>, member: &Member, answer: Response<Incoming>) -> Tried {
    let (mut head, body) = answer.into_parts();
    debug!(
        id = sending.named.id(),
        worker = member.id,
        status = head.status.as_u16(),
        "unavailable"
    );
    let answer = match short(body, FAILURE_TIME).await {
        Some(bytes) => {
            headers::remove_hop_by_hop(&mut head.headers);
            headers::remove_admission(&mut head.headers);
            head.headers.remove(CONTENT_LENGTH);
            let mut answer = own(head.status, "application/json", bytes);
            *answer.headers_mut() = head.headers;
            answer
        }
        None => error(head.status, "the worker's answer broke off"),
    };
    Tried::Failed {
        answer,
        closed: false,
    }
}

async fn relay(
    shared: &Shared,
    sending: &Sending<'_>,
    member: &Member,
    answer: Response<Incoming>,
    held: Held,
    silence: Option<Silence>,
) -> Tried {
    let (mut head, body) = answer.into_parts();
    let watcher = Watcher::for_response(&head.headers);
    headers::remove_hop_by_hop(&mut head.headers);
    headers::remove_admission(&mut head.headers);
    // How the worker spoke says nothing about how the client does.
    head.version = Version::HTTP_11;
    let mut body = Relay::new(body, watcher, Some(held), silence);
    if let Err(why) = body.first_piece().await {
        drop(body);
        failed(shared, sending, member, &why);
        let answer = error(why.status(), &said(&why));
        if let RelayError::Idle(_) = why {
            sending.record.ends(Outcome::WorkerError);
            return Tried::Answered(answer);
        }
        member.recheck.notify_one();
        return Tried::Failed {
            answer,
            closed: false,
        };
    }
    let multiplexed = sending.head.version == Version::HTTP_2;
    let body = if multiplexed {
        Either::Right(Paced::new(body, shared.client_timeout))
    } else {
        Either::Left(body)
    };
    Tried::Answered(Response::from_parts(head, Either::Right(body)))
}

/// A short body, whole; `None` if it is too long, too slow or broken.
async fn short(body: Incoming, time: Duration) -> Option<Bytes> {
    let body = Limited::new(body, SHORT_BYTES).collect();
    let whole = timeout(time, body).await.ok()?.ok()?;
    Some(whole.to_bytes())
}

/// The same errors are an engine's before a worker.
fn said(why: &dyn std::error::Error) -> String {
    why.to_string().replace("the engine", "the worker")
}

fn failed(shared: &Shared, sending: &Sending<'_>, member: &Member, why: &dyn std::error::Error) {
    let (id, worker, error) = (sending.named.id(), member.id, causes(why));
    // While a worker is down, each request would say the same.
    match shared.worker_warnings.due(Instant::now()) {
        Some(left_out) => warn!(id, worker, error, left_out, "no answer from a worker"),
        None => debug!(id, worker, error, "no answer from a worker"),
    }
}
