//! Asks one worker, again and again, whether it is well and what it serves.
//!
//! A Tidegate worker tells at `/ready`, which asks its engine too; others at
//! `/health`. Any answer that is no server error is a good one: not every engine
//! has such a page.

use std::time::Duration;

use http::StatusCode;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::member::Member;
use super::models;
use crate::proxy::engine::EngineError;
use crate::server::causes::causes;

/// How long a worker may take to say what it serves.
const MODELS_TIME: Duration = Duration::from_secs(5);

/// How often it is asked for that again, once it told.
const MODELS_INTERVAL: Duration = Duration::from_secs(10);

/// How often it is checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// From one check to the next.
    pub(super) interval: Duration,
    /// How long a check may take.
    pub(super) time: Duration,
}

/// Runs until it is dropped.
pub(super) async fn run(member: &Member, pace: Pace) {
    let mut models_due = Instant::now();
    loop {
        match probe(member, pace.time).await {
            Ok(status) if !status.is_server_error() => {
                // What it serves comes first, so that it gets nothing that it does not.
                if models_due <= Instant::now() && learn(member).await {
                    models_due = Instant::now() + MODELS_INTERVAL;
                }
                let news = member.known().health.answered();
                if news {
                    member.watched.tell_news();
                    info!(worker = member.id, url = %member.url(), "a worker answers");
                }
            }
            other => {
                // One that comes back may serve something else.
                models_due = Instant::now();
                left_out(member, other);
            }
        }
        tokio::select! {
            () = sleep(pace.interval) => {}
            () = early(member, pace.interval) => {}
        }
    }
}

/// Someone asks for a check; not more often than makes sense.
async fn early(member: &Member, interval: Duration) {
    sleep(interval / 10).await;
    member.recheck.notified().await;
}

/// A check that failed, or was answered with a server error.
fn left_out(member: &Member, answer: Result<StatusCode, EngineError>) {
    let (worker, url) = (member.id, member.url());
    let mut known = member.known();
    let (news, why) = match &answer {
        Ok(status) => (known.health.failed(), status.to_string()),
        Err(why @ EngineError::Connect(_)) => (known.health.unreachable(), causes(why)),
        Err(why) => (known.health.failed(), causes(why)),
    };
    if news {
        warn!(worker, %url, why, "a worker is not well: left out");
    }
}

async fn probe(member: &Member, time: Duration) -> Result<StatusCode, EngineError> {
    let status = member.http.probe("/ready", time).await?;
    if status.is_success() || status.is_server_error() {
        return Ok(status);
    }
    member.http.probe("/health", time).await
}

/// Whether it told what it serves.
async fn learn(member: &Member) -> bool {
    let (worker, url) = (member.id, member.url());
    match models::ask(&member.http, MODELS_TIME).await {
        Ok(Some(served)) => {
            if served != member.served() {
                match &served {
                    models::Served::Listed(list) => {
                        let models: Vec<&String> = list.keys().take(20).collect();
                        info!(worker, %url, ?models, "a worker tells what it serves");
                    }
                    _ => warn!(
                        worker,
                        %url,
                        "a worker lists no models: it gets what no other worker lists"
                    ),
                }
                member.serves(served);
            }
            true
        }
        Ok(None) => false,
        Err(why) => {
            tracing::debug!(worker, %url, error = causes(&why), "a worker does not tell its models");
            false
        }
    }
}
