//! A gated request's way in: who it is for, the gate, and what is said to those
//! that do not get in.

use std::sync::Arc;

use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use tidegate::{AdmissionOwned, OwnedPermit, Rejection};
use tidegate_policy::reason::Reason;
use tracing::debug;

use super::answer::{Answer, error};
use super::decision::{self, Queued};
use super::refusal::{class_refusal, refusal};
use super::shared::Shared;
use super::slot::Slot;
use crate::policy::{Verdict, asked};
use crate::proxy::request_body::{BodyError, RequestBody};
use crate::proxy::{headers, rank_field};
use crate::server::discard::discard;
use crate::server::named::Named;

/// Waits for the gate. `Err` is the answer of a request that does not get in,
/// whose body is then thrown away.
pub(super) async fn enter(
    shared: &Shared,
    head: &HeaderMap,
    mut body: RequestBody,
    trusted: bool,
    named: &Named,
) -> Result<(Slot, RequestBody), Answer> {
    // A client that waits for leave to send its body gets it when admitted.
    let expects = head.contains_key(EXPECT);
    match admit(shared, head, &mut body, expects, trusted, named).await {
        Ok(slot) => Ok((slot, body)),
        Err(answer) => {
            if !expects {
                discard(body);
            }
            Err(*answer)
        }
    }
}

/// Asks the gate, and waits for it. The body is read meanwhile, within the
/// budget: the sooner it is here, the less an admitted request waits for it, and
/// one that makes no sense gives its place up.
async fn admit(
    shared: &Shared,
    head: &HeaderMap,
    body: &mut RequestBody,
    expects: bool,
    trusted: bool,
    named: &Named,
) -> Result<Slot, Box<Answer>> {
    if shared.is_draining() {
        return Err(unavailable("The worker is shutting down"));
    }
    body.limit(shared.max_body).map_err(unusable)?;
    let mut rank = headers::rank(head).map_err(|why| mistake(&why))?;
    if shared.rank_from_body && trusted {
        body.read_whole(&shared.budget).await.map_err(unusable)?;
        let named = rank_field::rank(body.read_so_far()).map_err(|why| mistake(&why))?;
        rank = headers::same_rank(rank, named).map_err(|why| mistake(&why))?;
    }
    let slot = |permit| Slot::new(permit, Arc::clone(&shared.drain));
    let Some(policy) = &shared.policy else {
        let permit = at_gate(shared, rank, body, expects, named).await?;
        return Ok(slot(permit));
    };
    body.read_whole(&shared.budget).await.map_err(unusable)?;
    let asked = asked::read(body.read_so_far());
    let (key, class) = (headers::api_key(head), headers::class(head));
    match policy.enter(&asked, key, class, rank).await {
        Verdict::In(permit, inside) => {
            decision::admitted(named, permit.lane());
            Ok(slot(permit).followed(inside))
        }
        Verdict::GateAlone(alone) => {
            let permit = at_gate(shared, rank, body, false, named).await?;
            Ok(slot(permit).followed(alone.entered()))
        }
        Verdict::Refused(class, reason) => Err(judged(shared, &class, reason, named)),
        Verdict::Gone => Err(unavailable("The worker has stopped")),
    }
}

/// Asks the gate, and waits in its queue.
async fn at_gate(
    shared: &Shared,
    rank: Option<u32>,
    body: &mut RequestBody,
    expects: bool,
    named: &Named,
) -> Result<OwnedPermit, Box<Answer>> {
    let admission = shared
        .gate
        .request_owned(rank)
        .map_err(|rejection| refused(shared, &rejection, named))?;
    match admission {
        AdmissionOwned::Admitted(permit) => {
            decision::admitted(named, permit.lane());
            Ok(permit)
        }
        AdmissionOwned::Queued(ticket) => {
            let queued = Queued::new(named, &shared.gate, rank);
            let permit = tokio::select! {
                biased;
                permit = ticket => permit,
                why = body.read_ahead(&shared.budget), if !expects => {
                    queued.gave_up(&why);
                    return Err(unusable(why));
                }
            };
            match permit {
                Ok(permit) => {
                    let waited = queued.admitted(permit.lane());
                    shared.metrics.waited(permit.lane(), waited);
                    Ok(permit)
                }
                Err(stopped) => {
                    queued.gave_up(&stopped);
                    Err(refused(shared, &stopped.into(), named))
                }
            }
        }
    }
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
        let ahead = overload.counts;
        shared.drain.retry_after(ahead, rand::random())
    });
    decision::refused(named, overload, retry_after);
    Box::new(refusal(shared.overload_status, overload, retry_after))
}

fn judged(shared: &Shared, class: &str, reason: Reason, named: &Named) -> Box<Answer> {
    let seen = shared.gate.snapshot().worker;
    let retry_after = shared
        .retry_after
        .then(|| shared.drain.retry_after(seen, rand::random()));
    decision::judged(named, class, reason, retry_after);
    Box::new(class_refusal(
        shared.overload_status,
        class,
        reason,
        retry_after,
    ))
}

fn unavailable(message: &str) -> Box<Answer> {
    Box::new(error(StatusCode::SERVICE_UNAVAILABLE, message))
}
