//! What those hear that do not get in, and the log with them.

use tidegate::Rejection;

use super::answer::{Answer, unavailable};
use super::decision;
use super::refusal::{class_refusal, refusal};
use super::shared::Shared;
use crate::policy::Refused;
use crate::server::named::Named;

/// What the gate's refusal says.
pub(super) fn refused(shared: &Shared, rejection: &Rejection, named: &Named) -> Box<Answer> {
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

/// What the policy's refusal says. Who is held is ahead as who is in the gate's queue is.
pub(super) fn judged(shared: &Shared, refused: &Refused, named: &Named) -> Box<Answer> {
    let retry_after = shared.retry_after.then(|| {
        let mut ahead = shared.gate.snapshot().worker;
        ahead.queued = ahead.queued.saturating_add(refused.ahead);
        shared.drain.retry_after(ahead, true, rand::random())
    });
    decision::judged(&shared.decisions, named, refused, retry_after);
    Box::new(class_refusal(shared.overload_status, refused, retry_after))
}
