//! Ten times what the engine can serve, for a tenth of a second.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::subject::{Arrival, Subject, poll_once};

use super::bystander::while_it_lasts;
use super::{ASIDE, SPAN, Seen};

/// Of rank 0.
const LIMIT: u32 = 64;
/// How long a request runs.
const SERVICE: Duration = Duration::from_millis(2);
/// Arrivals over what rank 0 can serve.
const TIMES: f64 = 10.0;

/// Requests come for rank 0 at ten times its rate, 320,000 a second; its queue
/// holds as many as run, what does not fit is refused.
pub fn burst<S: Subject>() -> Option<Seen> {
    if !S::RULES.ranks || !S::RULES.queue {
        // The bystander would be queued behind them.
        return None;
    }
    let gate = S::build(2, LIMIT, LIMIT, LIMIT);
    Some(while_it_lasts(&gate, ASIDE, || storm(&gate)))
}

/// Clients and engine in one thread: the other core is the bystander's.
fn storm<S: Subject>(gate: &S) {
    let between = SERVICE.as_secs_f64() / f64::from(LIMIT) / TIMES;
    let start = Instant::now();
    let mut came = 0;
    let mut running: VecDeque<(Instant, S::Permit<'_>)> = VecDeque::new();
    let mut queued: VecDeque<S::Ticket<'_>> = VecDeque::new();
    while start.elapsed() < SPAN {
        let now = Instant::now();
        while running.front().is_some_and(|(due, _)| *due <= now) {
            running.pop_front();
        }
        // First in, first out: if the first has no turn, no other has.
        while let Some(Poll::Ready(permit)) = queued.front_mut().map(poll_once) {
            queued.pop_front();
            running.push_back((now + SERVICE, permit));
        }
        let due = (now - start).as_secs_f64() / between;
        while f64::from(came) < due {
            came += 1;
            match gate.request(Some(0)) {
                Arrival::Admitted(permit) => running.push_back((now + SERVICE, permit)),
                Arrival::Queued(ticket) => queued.push_back(ticket),
                Arrival::Refused => {}
            }
        }
    }
}
