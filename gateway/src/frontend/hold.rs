//! A request's way with a policy: held while every worker that could have it is busy,
//! then [routed](super::route).
//!
//! A request that was let in and finds that the workers refuse it after all is held
//! again, in its old place and with the rest of its time, as long as nobody else
//! has room. What it waits for is then a worker that may have refused it before.

use std::sync::Arc;
use std::time::Instant;

use tracing::debug;

use super::answer::{self, Answer};
use super::attempt::Sending;
use super::eligible::Serving;
use super::member::Member;
use super::policies::Queue;
use super::record::{Outcome, UNKNOWN};
use super::route::route;
use super::shared::Shared;
use super::workers::{Wanted, Workers};
use crate::policy::asked::Asked;
use crate::policy::{Door, Refused, Verdict};
use crate::proxy::headers;
use crate::worker::refusal::class_refusal;

/// Sends a request, once the policy lets it, to those of `serving` that may have it. What
/// it asks for is `None` without a policy. Dropping the future cancels the request, held or not.
pub(super) async fn send(
    shared: &Shared,
    sending: &Sending<'_>,
    serving: Vec<Arc<Member>>,
    wanted: Wanted,
    asked: Option<Asked>,
) -> Answer {
    let (Some(policy), Some(asked)) = (&shared.policy, asked) else {
        return route(shared, sending, &serving, wanted.rank, None).await;
    };
    let model = wanted.model.as_deref();
    let listed = model.filter(|model| shared.members.list(model));
    let queue = policy.of(listed.unwrap_or(UNKNOWN));
    let asked = Asked {
        // A path may name it instead of the body.
        model: model.unwrap_or_default().to_owned(),
        ..asked
    };
    let head = &sending.head.headers;
    let (key, class) = (headers::api_key(head), headers::class(head));
    let begun = Instant::now();
    sending.record.ends(Outcome::Left);
    let entering = queue.layer.enter(&asked, key, class, wanted.clone());
    let Some(mut verdict) = unless_draining(shared, entering).await else {
        return shutting_down(sending);
    };
    loop {
        let reserved = match verdict {
            Verdict::In(reserved, inside) => {
                let its = inside.class().unwrap_or_default();
                sending.record.waited(its, begun.elapsed());
                sending.record.followed(inside, &queue.drain);
                reserved
            }
            Verdict::GateAlone(alone) => {
                sending.record.followed(alone.entered(), &queue.drain);
                return route(shared, sending, &serving, wanted.rank, None).await;
            }
            Verdict::Refused(refused) => return away(shared, sending, &queue, &refused),
            Verdict::Gone => return shutting_down(sending),
        };
        // Workers may have come and gone meanwhile.
        let serving = match shared.members.serving(model) {
            Serving::These(serving) => serving,
            _ => Vec::new(),
        };
        let answer = route(shared, sending, &serving, wanted.rank, reserved).await;
        let full =
            sending.record.is_rejected() && queue.layer.door().has_room(&wanted) == Some(false);
        let turned_away = full.then(|| sending.record.unfollowed()).flatten();
        let Some(inside) = turned_away else {
            return answer;
        };
        sending.record.ends(Outcome::Left);
        match unless_draining(shared, inside.again(&asked, key, class, wanted.clone())).await {
            Some(next) => verdict = next,
            None => return shutting_down(sending),
        }
    }
}

/// What the policy says, or `None` once the frontend shuts down, when nobody waits any
/// longer.
async fn unless_draining(
    shared: &Shared,
    held: impl Future<Output = Verdict<Workers>>,
) -> Option<Verdict<Workers>> {
    tokio::select! {
        biased;
        verdict = held => Some(verdict),
        () = shared.draining.cancelled() => None,
    }
}

fn shutting_down(sending: &Sending<'_>) -> Answer {
    sending.record.ends(Outcome::Unavailable);
    answer::unavailable("the frontend is shutting down")
}

/// What the policy's refusal says.
fn away(shared: &Shared, sending: &Sending<'_>, queue: &Queue, refused: &Refused) -> Answer {
    let Refused { class, reason, .. } = refused;
    debug!(id = sending.named.id(), class, %reason, "refused by the policy");
    sending.record.ends(Outcome::Rejected);
    let retry_after = shared.retry_after.then(|| {
        let known = queue.drain.retry_after_held(refused.ahead, rand::random());
        known.unwrap_or(answer::COME_BACK)
    });
    class_refusal(shared.overload_status, refused, retry_after)
}
