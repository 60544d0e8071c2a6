//! A gated request's way in: who it is for, the gate, and what is said to those
//! that do not get in.

use std::sync::Arc;

use http::header::EXPECT;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tracing::debug;

use super::answer::{Answer, error, unavailable};
use super::away::judged;
use super::decision;
use super::shared::Shared;
use super::slot::Slot;
use super::waiting::Waiting;
use crate::policy::{Arrived, Verdict, asked as profile};
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
    /// Whether it wants news while it waits.
    pub(super) progress: bool,
}

/// A request that was not refused.
#[derive(Debug)]
pub(super) enum Entered {
    /// It was admitted.
    In(Slot, RequestBody),
    /// It waits, its whole body is here, it wants to be told, and it streams, so
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
        let waiting = match Waiting::at_gate(shared, rank, None, named)? {
            Ok(slot) => return Ok(Admitted::In(slot)),
            Err(waiting) => waiting,
        };
        return wait_and_read(shared, asked, waiting, body, expects).await;
    };
    body.read_whole(&shared.budget).await.map_err(unusable)?;
    let mut profile = profile::read(body.read_so_far());
    profile.stream |= streams_by_path(asked.path);
    let (key, class) = (
        headers::api_key(asked.headers),
        headers::class(asked.headers),
    );
    let mut waiting = match policy.arrives(&profile, key, class, rank) {
        Arrived::Held(held) => Waiting::in_class(shared, held, rank, named),
        Arrived::Decided(Verdict::In(permit, inside)) => {
            decision::admitted(&shared.decisions, named, permit.lane());
            let slot = Slot::new(permit, Arc::clone(&shared.drain));
            return Ok(Admitted::In(slot.followed(inside)));
        }
        Arrived::Decided(Verdict::GateAlone(alone)) => {
            match Waiting::at_gate(shared, rank, Some(alone), named)? {
                Ok(slot) => return Ok(Admitted::In(slot)),
                Err(waiting) => waiting,
            }
        }
        Arrived::Decided(Verdict::Refused(refused)) => {
            return Err(judged(shared, &refused, named));
        }
        Arrived::Decided(Verdict::Gone) => return Err(unavailable("The worker has stopped")),
    };
    if asked.progress && profile.stream {
        return Ok(Admitted::Waits(waiting));
    }
    waiting.turn(shared).await.map(Admitted::In)
}

/// Waits in the gate's queue. The body is read meanwhile, unless its client waits for
/// leave to send it.
async fn wait_and_read(
    shared: &Shared,
    asked: Asked<'_>,
    mut waiting: Waiting,
    body: &mut RequestBody,
    expects: bool,
) -> Result<Admitted, Box<Answer>> {
    if !expects {
        tokio::select! {
            biased;
            slot = waiting.turn(shared) => return slot.map(Admitted::In),
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
    waiting.turn(shared).await.map(Admitted::In)
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
    streams_by_path(path) || member::last(body.read_so_far(), "stream") == Some(Value::Bool(true))
}

/// Whether the route alone asks for a stream, as TGI's does.
fn streams_by_path(path: &str) -> bool {
    let path = normalise(path);
    path.last().is_some_and(|last| last == "generate_stream")
}

fn mistake(why: &dyn std::error::Error) -> Box<Answer> {
    Box::new(error(StatusCode::BAD_REQUEST, &why.to_string()))
}

fn unusable(why: BodyError) -> Box<Answer> {
    debug!(%why, "a request's body is not usable");
    Box::new(error(why.status(), &why.to_string()))
}
