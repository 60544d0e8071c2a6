//! How the gate learns the engine's size: flags first, else the engine is asked
//! until it answers, and now and then after that.

use std::time::Duration;

use tidegate::{EngineReport, Limits};
use tracing::{info, warn};

use super::known::KnownEngine;
use super::pages::{KINDS, Told};
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

/// Reports what is known, and asks the engine for the rest until it answers. From
/// then on it is asked now and then: an engine that was started anew may have another
/// size. Runs for ever, unless flags say all; cancel safe.
pub(super) async fn discover(shared: &Shared, known: KnownEngine) {
    let mut heard = Heard::default();
    if let Some(report) = from_flags(&known) {
        let complete = report.max_num_seqs.is_some();
        if heard.apply(shared, report, FLAGS) && complete {
            return;
        }
    }
    let mut pause = FIRST_PAUSE;
    loop {
        match ask(&shared.engine).await {
            Ok(answer) => heard.take(shared, &known, answer),
            Err(Nothing { why, told }) => heard.nothing(shared, why, told),
        }
        if heard.size {
            tokio::time::sleep(shared.ask_again).await;
        } else {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

/// What an engine answered.
struct Answer {
    from: &'static str,
    report: EngineReport,
    /// Why it tells no size, if it tells none.
    lacks: Option<String>,
}

/// Why an engine told nothing.
struct Nothing {
    why: String,
    /// It said something that cannot be.
    told: bool,
}

/// What has been heard of the engine so far. What it says once more is not news.
#[derive(Default)]
struct Heard {
    /// The newest answer, used or not.
    report: Option<EngineReport>,
    /// Whether its size is known.
    size: bool,
    /// The newest reason why not.
    why: Option<String>,
}

impl Heard {
    fn take(&mut self, shared: &Shared, known: &KnownEngine, answer: Answer) {
        let Answer {
            from,
            mut report,
            lacks,
        } = answer;
        if self.report.as_ref() != Some(&report) {
            self.report = Some(report.clone());
            if let Some(ranks) = &known.ranks {
                keep_ranks(&mut report, ranks, from);
            }
            self.apply(shared, report, from);
        }
        if !self.size {
            let unusable = || "what it tells is not usable".to_owned();
            self.nothing(shared, lacks.unwrap_or_else(unusable), true);
        }
    }

    /// As much is known as before, for this reason. An engine whose size is known may
    /// be away for a while.
    fn nothing(&mut self, shared: &Shared, why: String, told: bool) {
        if self.why.as_ref() == Some(&why) || (self.size && !told) {
            return;
        }
        let engine = shared.engine.url();
        if self.size {
            warn!(%engine, why, "the engine tells what is not usable; what it told before stays");
        } else if self.why.is_some() {
            warn!(%engine, why, "the engine's size is still not known");
        } else {
            warn_of_fallback(shared, &why);
        }
        self.why = Some(why);
    }

    /// Passes a report on to the gate. An unusable one, and one with other ranks than
    /// before, changes nothing but the log.
    fn apply(&mut self, shared: &Shared, report: EngineReport, from: &str) -> bool {
        if report.max_num_seqs == Some(0) {
            // Limits that someone set could hide it from the gate.
            warn!(from, "an engine that runs 0 sequences is not believed");
            return false;
        }
        let sized = report.max_num_seqs.is_some();
        let (ranks, max_num_seqs) = (report.ranks.clone(), report.max_num_seqs);
        match shared.gate.report_engine(report) {
            Ok(limits) => {
                if let Some(policy) = &shared.policy {
                    policy.resize(Size::of(shared.explicit, ranks.len(), max_num_seqs));
                }
                shared.drain.set_ranks(ranks.len());
                in_force(shared, from, &ranks, sized, limits);
                if sized {
                    self.size = true;
                    self.why = None;
                    shared.metrics.engine_reported();
                }
                true
            }
            Err(error) => {
                warn!(from, %error, "the engine's report was not usable");
                false
            }
        }
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

/// Logs the limits and where each came from. What flags make of them, they said
/// at the start.
fn in_force(shared: &Shared, from: &str, ranks: &[u32], sized: bool, limits: Limits) {
    if from == FLAGS {
        return;
    }
    if !sized {
        info!(
            from,
            ranks = show_ranks(ranks),
            "the engine told its ranks and no size"
        );
        return;
    }
    let source = |explicit: Option<u32>| match explicit {
        Some(_) => "set".to_owned(),
        None => Source::Reported.to_string(),
    };
    let explicit = shared.explicit;
    info!(
        from,
        ranks = ranks.len(),
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

/// Asks for each kind's page in turn, until one tells everything. Else what ranks
/// were told, or why there is nothing.
async fn ask(engine: &Engine) -> Result<Answer, Nothing> {
    let (mut ranks, mut unusable) = (None, None);
    for kind in &KINDS {
        let said = |why: &dyn std::fmt::Display| format!("{} {}: {why}", kind.name, kind.path);
        let told = match engine.json(kind.path, ANSWER_TIME).await {
            Ok(Some(page)) => (kind.read)(&page),
            Ok(None) | Err(EngineError::Answer(_)) => Told::Nothing,
            // Whoever does not answer once is not asked twice at a time.
            Err(why) => {
                let (why, told) = (why.to_string(), false);
                return Err(Nothing { why, told });
            }
        };
        let answer = |report, lacks| Answer {
            from: kind.name,
            report,
            lacks,
        };
        match told {
            Told::Nothing => {}
            Told::All(report) => return Ok(answer(report, None)),
            Told::Ranks(report, why) => {
                ranks.get_or_insert(answer(report, Some(said(&why))));
            }
            Told::Unusable(why) => {
                unusable.get_or_insert(said(&why));
            }
        }
    }
    ranks.ok_or_else(|| Nothing {
        told: unusable.is_some(),
        why: unusable.unwrap_or_else(|| "it has no page that tells".to_owned()),
    })
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
