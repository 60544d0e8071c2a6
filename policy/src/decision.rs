//! The decision: may this request enter now, should it wait, or is it refused?
//!
//! Memory comes first, then the deadline. All times are in milliseconds.
//!
//! ```text
//! memory      used + need ≤ total
//! queueing    waited + drain ≤ share × SLO(first token)
//! deadline    waited + drain + expected ≤ SLO           for each SLO that is set
//! ```
//!
//! The queueing share is of the SLO, and both rules are judged: a version of this
//! decision that compares drain + expected with the *share* would refuse a gold
//! request (share 0.7) with 30 % of its time to spare.
//!
//! What stands in the way may pass (memory in use, a limit reached) or not (more
//! memory than there is, a deadline that cannot be met). Only a request that waits
//! for something that may pass, and has the time, waits:
//!
//! | something is in the way | deadline at risk | decision |
//! | --- | --- | --- |
//! | no | no | admit |
//! | no | yes | refuse: `slo_violation_risk` |
//! | yes | no | wait, for that reason |
//! | memory | yes | refuse: `insufficient_memory` |
//! | a limit | yes | refuse: `slo_violation_risk` |
//!
//! Before all that, a need beyond the engine's whole memory is `too_large`, and so is
//! a class that is not critical while memory is short ([`headroom`]).
//! A request that fills a batch ([`fill`](crate::fill)) waits for the next step
//! instead of the queue, and its queueing share is not judged.

use crate::class::Class;
use crate::headroom;
use crate::memory::Memory;
use crate::profile::Expected;
use crate::reason::Reason;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may enter the engine now.
    Admit,
    /// Something that may pass is in the way.
    Wait(Reason),
    /// It is refused.
    Refuse(Reason),
    /// The state is not known: the gate alone decides.
    GateAlone,
}

/// What the decision goes by, besides the class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Situation {
    /// The engine's memory; `None` is not judged.
    pub memory: Option<Memory>,
    /// What the request needs of it.
    pub need: u64,
    /// The share of memory from which critical classes go first.
    pub critical_from: f64,
    /// A limit that is reached, if one is.
    pub limit: Option<Reason>,
    /// How long it has been held.
    pub waited_ms: f64,
    /// How long it will still be held.
    pub drain_ms: f64,
    /// How long it will take inside the engine.
    pub expected: Expected,
    /// The time to the engine's next step, where it would fill the batch.
    pub filling_ms: Option<f64>,
}

/// Decides. Pure: the same situation gives the same decision.
#[must_use]
pub fn decide(class: &Class, now: &Situation) -> Decision {
    if let Some(memory) = now.memory {
        if !memory.can_ever_fit(now.need) {
            return Decision::Refuse(Reason::TooLarge);
        }
        if headroom::sheds(class.critical, memory.share(), now.critical_from) {
            return Decision::Refuse(Reason::NoncriticalShed);
        }
    }
    let fits = now.memory.is_none_or(|memory| memory.fits(now.need));
    let short = (!fits).then_some(Reason::InsufficientMemory);
    let in_the_way = short.or(now.limit);
    match (in_the_way, at_risk(class, now, in_the_way.is_none())) {
        (None, false) => Decision::Admit,
        (Some(reason), false) => Decision::Wait(reason),
        (Some(Reason::InsufficientMemory), true) => Decision::Refuse(Reason::InsufficientMemory),
        (_, true) => Decision::Refuse(Reason::SloViolationRisk),
    }
}

/// Whether the class's promise would likely be broken.
fn at_risk(class: &Class, now: &Situation, free: bool) -> bool {
    let filling = now.filling_ms.filter(|_| free);
    let held = now.waited_ms + filling.unwrap_or(now.drain_ms);
    let slo = &class.slo;
    let queues_too_long = filling.is_none() && held > class.queue_share * slo.first_token_ms;
    let late = held + now.expected.first_token_ms > slo.first_token_ms;
    let ends_late = slo
        .end_to_end_ms
        .is_some_and(|promised| held + now.expected.end_to_end_ms > promised);
    queues_too_long || late || ends_late
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
