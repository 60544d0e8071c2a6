//! A request's way: who may have it, who gets it, and who gets it next.
//!
//! | what a worker does | what follows |
//! | --- | --- |
//! | cannot be reached | another one, as often as there are others: nothing was sent |
//! | refuses | another one, once |
//! | breaks off before the first byte of its answer, or answers 502 or 503 | another one, once |
//! | closes the connection without an answer, and there is no other | the same, on a new connection, once |
//! | says nothing for `--worker-idle-timeout` | 504: it may be at work |
//!
//! No worker gets a request twice, the last but one line apart. A request whose
//! worker broke off may have been begun by it: no byte of the answer has
//! reached the client, which is what counts here as not answered.
//!
//! | who is left | the client gets |
//! | --- | --- |
//! | somebody busy, marked, or who refused this very request | the overload status |
//! | nobody but who failed it | what that one said, or 502 |
//! | nobody who answers | 503 |

use std::sync::Arc;

use tokio::time::Instant;

use super::answer::{self, Answer};
use super::attempt::{Hand, Sending, Tried, attempt};
use super::choose::pick;
use super::eligible::{self, Counts, view};
use super::member::Member;
use super::record::Outcome;
use super::refusal::Refusal;
use super::shared::Shared;
use super::workers::Reserved;
use crate::proxy::engine::Reuse;

/// What has become of a request so far.
#[derive(Debug, Default)]
struct History {
    /// Workers that have had it.
    tried: Vec<u64>,
    refused: Option<Refusal>,
    failed: Option<Failure>,
}

#[derive(Debug)]
struct Failure {
    /// What to say if there is nobody else.
    answer: Answer,
    /// Whom to try once more if there is nobody else.
    again: Option<Arc<Member>>,
}

/// Sends a request to those of `serving` that may have it, until one answers. `rank`
/// is the one that the client names; the first try goes where a place is `reserved`, if
/// one is. Dropping the future cancels the request.
pub(super) async fn route(
    shared: &Shared,
    sending: &Sending<'_>,
    serving: &[Arc<Member>],
    rank: Option<u32>,
    mut reserved: Option<Reserved>,
) -> Answer {
    let mut history = History::default();
    loop {
        // Until an answer is there, whoever drops this is a client that leaves.
        sending.record.ends(Outcome::Left);
        let now = Instant::now();
        let (mut free, counts) = view(serving, sending.model, &history.tried, now);
        let hand = if let Some(reserved) = reserved.take() {
            Hand {
                member: Arc::clone(reserved.member()),
                rank: reserved.rank,
                reuse: Reuse::Kept,
                last: free.is_empty(),
                reserved: Some(reserved),
            }
        } else if let Some((member, choice)) = pick(&shared.picker, &mut free, rank, now) {
            Hand {
                member,
                rank: choice.rank,
                reuse: Reuse::Kept,
                last: free.is_empty() || history.refused.is_some(),
                reserved: None,
            }
        } else if let Some(member) = history.failed.as_mut().and_then(|it| it.again.take()) {
            Hand {
                member,
                rank: None,
                reuse: Reuse::Never,
                last: true,
                reserved: None,
            }
        } else {
            return nobody(shared, sending, counts, history);
        };
        let member = Arc::clone(&hand.member);
        let first = !history.tried.contains(&member.id);
        if first {
            history.tried.push(member.id);
        }
        match attempt(shared, sending, hand).await {
            Tried::Answered(answer) => {
                sent(shared, &history, answer.status());
                return answer;
            }
            Tried::Unreachable => {}
            Tried::Refused(refusal) => {
                if history.refused.replace(refusal).is_some() {
                    return nobody(shared, sending, counts, history);
                }
            }
            Tried::Failed { answer, closed } => {
                let again = (closed && first).then_some(member);
                let failure = Failure { answer, again };
                if history.failed.replace(failure).is_some() {
                    return nobody(shared, sending, counts, history);
                }
            }
        }
    }
}

/// What is said when nobody is left.
fn nobody(shared: &Shared, sending: &Sending<'_>, counts: Counts, history: History) -> Answer {
    let record = sending.record;
    if history.refused.is_some() || counts.busy + counts.marked > 0 {
        record.ends(Outcome::Rejected);
        shared.decisions.note("refused", None, || {
            let Counts {
                busy,
                marked,
                unwell,
            } = counts;
            let refused = marked + usize::from(history.refused.is_some());
            let why = format!("{busy} busy, {refused} refused lately, {unwell} do not answer");
            ("every worker".to_owned(), why)
        });
        let (status, refusal) = (shared.overload_status, history.refused.as_ref());
        return answer::overloaded(status, counts, refusal, shared.retry_after);
    }
    if let Some(failure) = history.failed {
        record.ends(Outcome::of(failure.answer.status()));
        return failure.answer;
    }
    record.ends(Outcome::Unavailable);
    let why = match eligible::all(counts, history.tried.len()) {
        0 => "there is no worker",
        _ => "no worker that serves this model answers",
    };
    answer::unavailable(why)
}

/// Tells the page who answered, after whom.
fn sent(shared: &Shared, history: &History, status: http::StatusCode) {
    shared.decisions.note("answered", None, || {
        let (last, before) = match history.tried.split_last() {
            Some((last, before)) => (last.to_string(), before),
            None => (String::new(), &[][..]),
        };
        let before: Vec<String> = before.iter().map(u64::to_string).collect();
        let why = match before.is_empty() {
            true => format!("status {}", status.as_u16()),
            false => format!(
                "status {}, after worker {}",
                status.as_u16(),
                before.join(", ")
            ),
        };
        (format!("worker {last}"), why)
    });
}
