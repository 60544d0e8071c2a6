//! How the gate learns the engine's size: flags first, else the engine is asked
//! until it answers.

use std::time::Duration;

use tidegate::{EngineReport, Limits, Settings};
use tracing::{debug, info, warn};

pub use super::known::KnownEngine;
use super::pages::KINDS;
use super::shared::Shared;
use crate::config::Source;
use crate::config::ranks::show_ranks;
use crate::policy::Size;
use crate::proxy::engine::{Engine, EngineError};

/// How long an engine may take to answer one question.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Where a report came from that nobody was asked for.
const FLAGS: &str = "flags";

/// Pauses between attempts: doubled from the first up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// Reports what is known, and asks the engine for the rest until it answers.
/// Runs until then; cancel safe.
pub(super) async fn discover(shared: &Shared, known: KnownEngine) {
    if let Some(report) = from_flags(&known) {
        let complete = report.max_num_seqs.is_some();
        if apply(shared, report, FLAGS) && complete {
            return;
        }
    }
    let mut pause = FIRST_PAUSE;
    let mut warned = false;
    loop {
        let why = match ask(&shared.engine).await {
            Ok((name, mut report)) => {
                if let Some(ranks) = &known.ranks {
                    keep_ranks(&mut report, ranks, name);
                }
                if apply(shared, report, name) {
                    return;
                }
                "what it tells is not usable"
            }
            Err(why) => why,
        };
        debug!(engine = %shared.engine.url(), why, "the engine did not tell its size");
        if !warned {
            warned = true;
            warn_of_fallback(shared, why);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

fn from_flags(known: &KnownEngine) -> Option<EngineReport> {
    if known.ranks.is_none() && known.max_num_seqs.is_none() {
        return None;
    }
    Some(EngineReport {
        ranks: known.ranks.clone().unwrap_or_else(|| vec![0]),
        max_num_seqs: known.max_num_seqs,
    })
}

/// Puts the ranks that flags name in the place of those that an engine tells.
fn keep_ranks(report: &mut EngineReport, ranks: &[u32], from: &str) {
    if report.ranks != ranks {
        let (told, kept) = (show_ranks(&report.ranks), show_ranks(ranks));
        warn!(
            from,
            told, kept, "the engine has other ranks than --dp-ranks says, which stay"
        );
        report.ranks = ranks.to_vec();
    }
}

/// Passes a report on to the gate. An unusable one changes nothing but the log.
fn apply(shared: &Shared, report: EngineReport, from: &str) -> bool {
    if report.max_num_seqs == Some(0) {
        // Limits that someone set could hide it from the gate.
        warn!(from, "an engine that runs 0 sequences is not believed");
        return false;
    }
    let known = report.max_num_seqs.is_some();
    let (ranks, max_num_seqs) = (report.ranks.len(), report.max_num_seqs);
    match shared.gate.report_engine(report) {
        Ok(limits) => {
            in_force(shared, from, ranks, limits);
            if let Some(policy) = &shared.policy {
                policy.resize(size(shared.explicit, ranks, max_num_seqs));
            }
            if known {
                shared.metrics.engine_reported(true);
            }
            true
        }
        Err(error) => {
            warn!(from, %error, "the engine's size was not usable");
            false
        }
    }
}

/// What the policy is to know of the engine. The gate's own limits it moves itself.
pub(super) fn size(explicit: Settings, ranks: usize, max_num_seqs: Option<u32>) -> Size {
    let limits = explicit.resolve_for(ranks, max_num_seqs);
    let limit = limits.map_or(u32::MAX, |limits| limits.engine_request_limit);
    Size {
        limit,
        ranks: u32::try_from(ranks).unwrap_or(u32::MAX).max(1),
        batch: max_num_seqs.unwrap_or(limit),
    }
}

/// Logs the limits and where each came from. What flags make of them, they said
/// at the start.
fn in_force(shared: &Shared, from: &str, ranks: usize, limits: Limits) {
    if from == FLAGS {
        return;
    }
    let source = |explicit: Option<u32>| match explicit {
        Some(_) => "set".to_owned(),
        None => Source::Reported.to_string(),
    };
    let explicit = shared.explicit;
    info!(
        from,
        ranks,
        engine_request_limit = limits.engine_request_limit,
        engine_request_limit_source = source(explicit.engine_request_limit),
        engine_request_waiting_limit = limits.engine_request_waiting_limit,
        engine_request_waiting_limit_source = source(explicit.engine_request_waiting_limit),
        request_queue_limit = limits.request_queue_limit,
        request_queue_limit_source = source(explicit.request_queue_limit),
        "the engine told its size: limits in force, per rank"
    );
}

fn warn_of_fallback(shared: &Shared, why: &str) {
    if shared.explicit.engine_request_limit.is_some() {
        info!(engine = %shared.engine.url(), why, "the engine's size is not known; explicit limits hold");
        return;
    }
    warn!(
        engine = %shared.engine.url(),
        why,
        limit = shared.gate.snapshot().limits.engine_request_limit,
        "THE ENGINE'S SIZE IS NOT KNOWN: the fallback limit protects nothing. \
         Set --max-num-seqs (and --dp-ranks), or --engine-request-limit. Asking on."
    );
}

/// Asks for each kind's page in turn.
async fn ask(engine: &Engine) -> Result<(&'static str, EngineReport), &'static str> {
    for kind in &KINDS {
        match engine.json(kind.path, ANSWER_TIME).await {
            Ok(Some(page)) => {
                if let Some(report) = (kind.read)(&page) {
                    return Ok((kind.name, report));
                }
            }
            Ok(None) | Err(EngineError::Answer(_)) => {}
            // Whoever does not answer once is not asked twice at a time.
            Err(EngineError::Connect(_)) => return Err("it refuses connections"),
            Err(EngineError::Timeout(_)) => return Err("it does not answer"),
            Err(_) => return Err("it closed the connection"),
        }
    }
    Err("it has no page that tells")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_alone_are_enough() {
        let known = |ranks, max_num_seqs| {
            from_flags(&KnownEngine {
                ranks,
                max_num_seqs,
            })
        };
        assert_eq!(known(None, None), None);
        assert_eq!(
            known(None, Some(8)).map(|report| report.ranks),
            Some(vec![0])
        );
        assert_eq!(
            known(Some(vec![4, 5]), None).map(|report| report.ranks),
            Some(vec![4, 5])
        );
    }
}
