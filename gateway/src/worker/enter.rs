//! A gated request's way in: who it is for, the gate, and what is said to those
//! that do not get in.

use std::sync::Arc;

use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tidegate::{AdmissionOwned, Rejection};
use tidegate_policy::reason::Reason;
use tracing::debug;

use super::answer::{Answer, error, unavailable};
use super::decision;
use super::refusal::{class_refusal, refusal};
use super::shared::Shared;
use super::slot::Slot;
use super::waiting::Waiting;
use crate::policy::{Verdict, asked as profile};
use crate::proxy::request_body::{BodyError, RequestBody};
use crate::proxy::{headers, member, rank_field};
use crate::server::discard::discard;
use crate::server::named::Named;
use crate::server::path::normalise;

/// What a request says of itself before its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) path: &'a str,
    /// Whether its client's claims are believed.
    pub(super) trusted: bool,
    /// Whether it wants news while it is queued.
    pub(super) progress: bool,
}

/// A request that was not refused.
#[derive(Debug)]
pub(super) enum Entered {
    /// It was admitted.
    In(Slot, RequestBody),
    /// It is queued, its whole body is here, it wants to be told, and it streams, so
    /// that it can be.
    Waits(Waiting, RequestBody),
}

/// Waits for the gate. `Err` is the answer of a request that does not get in,
/// whose body is then thrown away.
pub(super) async fn enter(
    shared: &Shared,
    asked: Asked<'_>,
    mut body: RequestBody,
    named: &Named,
) -> Result<Entered, Answer> {
    // A client that waits for leave to send its body gets it when admitted.
    let expects = asked.headers.contains_key(EXPECT);
    let answer = match admit(shared, asked, &mut body, expects, named).await {
        Ok(Admitted::In(slot)) => return Ok(Entered::In(slot, body)),
        Ok(Admitted::Waits(waiting)) => return Ok(Entered::Waits(waiting, body)),
        Err(answer) => answer,
    };
    if !expects {
        discard(body);
    }
    Err(*answer)
}

/// [`Entered`], without the body.
enum Admitted {
    In(Slot),
    Waits(Waiting),
}

/// Asks the gate, and waits for it. The body is read meanwhile, within the
/// budget: the sooner it is here, the less an admitted request waits for it, and
/// one that makes no sense gives its place up.
async fn admit(
    shared: &Shared,
    asked: Asked<'_>,
    body: &mut RequestBody,
    expects: bool,
    named: &Named,
) -> Result<Admitted, Box<Answer>> {
    if shared.is_draining() {
        return Err(unavailable("The worker is shutting down"));
    }
    body.limit(shared.max_body).map_err(unusable)?;
    let rank = rank(shared, asked, body).await?;
    let Some(policy) = &shared.policy else {
        return at_gate(shared, asked, rank, body, expects, named).await;
    };
    body.read_whole(&shared.budget).await.map_err(unusable)?;
    let profile = profile::read(body.read_so_far());
    let (key, class) = (
        headers::api_key(asked.headers),
        headers::class(asked.headers),
    );
    match policy.enter(&profile, key, class, rank).await {
        Verdict::In(permit, inside) => {
            decision::admitted(&shared.decisions, named, permit.lane());
            let slot = Slot::new(permit, Arc::clone(&shared.drain));
            Ok(Admitted::In(slot.followed(inside)))
        }
        Verdict::GateAlone(alone) => {
            let untold = Asked {
                progress: false,
                ..asked
            };
            // Nobody who is not told comes out waiting.
            match at_gate(shared, untold, rank, body, false, named).await? {
                Admitted::In(slot) => Ok(Admitted::In(slot.followed(alone.entered()))),
                waits => Ok(waits),
            }
        }
        Verdict::Refused(class, reason) => Err(judged(shared, &class, reason, named)),
        Verdict::Gone => Err(unavailable("The worker has stopped")),
    }
}

/// Asks the gate, and waits in its queue.
async fn at_gate(
    shared: &Shared,
    asked: Asked<'_>,
    rank: Option<u32>,
    body: &mut RequestBody,
    expects: bool,
    named: &Named,
) -> Result<Admitted, Box<Answer>> {
    let admission = shared
        .gate
        .request_owned(rank)
        .map_err(|rejection| refused(shared, &rejection, named))?;
    let mut waiting = match admission {
        AdmissionOwned::Admitted(permit) => {
            decision::admitted(&shared.decisions, named, permit.lane());
            let slot = Slot::new(permit, Arc::clone(&shared.drain));
            return Ok(Admitted::In(slot));
        }
        AdmissionOwned::Queued(ticket) => Waiting::new(&shared.decisions, ticket, named),
    };
    if !expects {
        tokio::select! {
            biased;
            permit = waiting.turn() => return waiting.over(shared, permit).map(Admitted::In),
            read = body.read_ahead(&shared.budget) => {
                if let Err(why) = read {
                    waiting.gave_up(&why);
                    return Err(unusable(why));
                }
                if asked.progress && streams(asked.path, body) {
                    return Ok(Admitted::Waits(waiting));
                }
            }
        }
    }
    let permit = waiting.turn().await;
    waiting.over(shared, permit).map(Admitted::In)
}

/// The rank that the request is for. The engine follows one in the body whoever
/// named it, and bodies pass unchanged: a client that may not name one is told so.
async fn rank(
    shared: &Shared,
    asked: Asked<'_>,
    body: &mut RequestBody,
) -> Result<Option<u32>, Box<Answer>> {
    let rank = headers::rank(asked.headers).map_err(|why| mistake(&why))?;
    if !shared.rank_from_body {
        return Ok(rank);
    }
    body.read_whole(&shared.budget).await.map_err(unusable)?;
    let named = rank_field::rank(body.read_so_far()).map_err(|why| mistake(&why))?;
    if named.is_some() && !asked.trusted {
        let said = "this client may not name a rank: leave data_parallel_rank out of the body, \
                    or see --trust-admission-headers";
        return Err(Box::new(error(StatusCode::FORBIDDEN, said)));
    }
    headers::same_rank(rank, named).map_err(|why| mistake(&why))
}

/// Whether a request whose body is here asks for a stream.
fn streams(path: &str, body: &RequestBody) -> bool {
    normalise(path)
        .last()
        .is_some_and(|last| last == "generate_stream")
        || member::last(body.read_so_far(), "stream") == Some(Value::Bool(true))
}

fn mistake(why: &dyn std::error::Error) -> Box<Answer> {
    Box::new(error(StatusCode::BAD_REQUEST, &why.to_string()))
}

fn unusable(why: BodyError) -> Box<Answer> {
    debug!(%why, "a request's body is not usable");
    Box::new(error(why.status(), &why.to_string()))
}

fn refused(shared: &Shared, rejection: &Rejection, named: &Named) -> Box<Answer> {
    let Some(overload) = rejection.overload() else {
        return unavailable("The worker has stopped");
    };
    let retry_after = shared.retry_after.then(|| {
        let (ahead, of_worker) = (overload.counts, overload.of_worker);
        shared.drain.retry_after(ahead, of_worker, rand::random())
    });
    decision::refused(&shared.decisions, named, overload, retry_after);
    Box::new(refusal(shared.overload_status, overload, retry_after))
}

fn judged(shared: &Shared, class: &str, reason: Reason, named: &Named) -> Box<Answer> {
    let seen = shared.gate.snapshot().worker;
    let retry_after = shared
        .retry_after
        .then(|| shared.drain.retry_after(seen, true, rand::random()));
    decision::judged(&shared.decisions, named, class, reason, retry_after);
    Box::new(class_refusal(
        shared.overload_status,
        class,
        reason,
        retry_after,
    ))
}
