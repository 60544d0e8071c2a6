//! Honest refusals: for the limit that is named there was an instant within the
//! call at which those who held it, or may have, and the other calls in progress
//! were as many: a request counts twice while it holds and one of its calls is in
//! progress, as one that is queued and being offered its capacity.

use tidegate::{Limit, Scope, Settings};

use super::{Answer, Call, History, Request, Span, Stamp, What};

pub fn honest(history: &History) -> Result<(), String> {
    let ends = Ends::new(history);
    for (number, request) in history.requests.iter().enumerate() {
        let (call, answer) = request.arrival();
        let moving = |span: Span| span.0 <= call.end && call.start <= span.1;
        let moves = ends.resizes.iter().any(|span| moving(*span));
        let most = |limit, rank| ends.most(history, number, limit, rank);
        let complaint = match answer {
            Answer::Admitted => None,
            // While limits move, either may be in force.
            Answer::Queued if moves => None,
            Answer::Queued => {
                let fits = certainly_fits(history, &most, request.rank);
                fits.then(|| "queued though it fits".to_owned())
            }
            Answer::Refused {
                limit,
                of_worker,
                value,
                scope,
            } => {
                let rank = if of_worker { None } else { request.rank };
                let found = most(limit, rank);
                let value = if moves {
                    least_in_force(history, &ends, call, limit, rank)
                } else {
                    value
                };
                if found < value {
                    Some(format!("at most {found} of {value}"))
                } else if scope == Scope::Worker && request.rank.is_some() {
                    no_scope(history, &most)
                } else {
                    None
                }
            }
        };
        if let Some(complaint) = complaint {
            return Err(format!("{complaint}: {request:?}{}", story(history, call)));
        }
    }
    Ok(())
}

/// The calls around one, in order: for people to read.
fn story(history: &History, around: Call) -> String {
    let mut calls: Vec<_> = history
        .requests
        .iter()
        .enumerate()
        .flat_map(|(number, r)| r.calls.iter().map(move |call| (number, r.rank, *call)))
        .filter(|(_, _, call)| call.end + 60 > around.start && call.start < around.end + 10)
        .collect();
    calls.sort_by_key(|(_, _, call)| call.start);
    let lines = calls.iter().map(|(number, rank, call)| {
        let Call { what, start, end } = call;
        format!("\n  {start:>4}..{end:<4} {number:>4} {rank:?} {what:?}")
    });
    lines.chain([format!("\n{:?}", history.resizes)]).collect()
}

/// The least that a limit may have been during a call that limits moved under.
fn least_in_force(
    history: &History,
    ends: &Ends,
    call: Call,
    limit: Limit,
    rank: Option<u32>,
) -> u64 {
    let n = u64::from(history.plan.ranks.max(1));
    let of = |limits: [u32; 3]| {
        let [r, w, q] = limits.map(u64::from);
        let per_rank = match limit {
            Limit::EngineRequest => r,
            Limit::EngineRequestWaiting => w,
            Limit::RequestQueue => q,
        };
        if rank.is_none() {
            n * per_rank
        } else {
            per_rank
        }
    };
    // One thread moves them, one move after another.
    let mut least = of(history.plan.limits);
    for (resize, span) in history.resizes.iter().zip(&ends.resizes) {
        let Settings {
            engine_request_limit: Some(r),
            engine_request_waiting_limit: Some(w),
            request_queue_limit: Some(q),
        } = resize.limits
        else {
            panic!("{resize:?} leaves something open")
        };
        if span.1 < call.start {
            least = of([r, w, q]);
        } else if span.0 <= call.end {
            least = least.min(of([r, w, q]));
        }
    }
    least
}

/// The most that may have counted against a limit.
type Most<'a> = dyn Fn(Limit, Option<u32>) -> u64 + 'a;

/// Whether a request certainly fitted, all through its call.
fn certainly_fits(history: &History, most: &Most<'_>, rank: Option<u32>) -> bool {
    // Resizes within the run: only where none is made are the limits known.
    if !history.resizes.is_empty() {
        return false;
    }
    let n = u64::from(history.plan.ranks.max(1));
    let [r, w, _] = history.plan.limits.map(u64::from);
    let room = |rank, times| {
        most(Limit::EngineRequest, rank) < times * r
            && most(Limit::EngineRequestWaiting, rank) < times * w
    };
    // Whoever may be queued is counted among those who may run.
    room(None, n) && (rank.is_none() || room(rank, 1))
}

/// A ranked request was refused for the whole worker: its queue was full then,
/// and its capacity taken.
fn no_scope(history: &History, most: &Most<'_>) -> Option<String> {
    if !history.resizes.is_empty() {
        return None;
    }
    let n = u64::from(history.plan.ranks.max(1));
    let [r, w, q] = history.plan.limits.map(|limit| n * u64::from(limit));
    let queue = most(Limit::RequestQueue, None);
    let running = most(Limit::EngineRequest, None);
    let waiting = most(Limit::EngineRequestWaiting, None);
    (queue < q || (running < r && waiting < w))
        .then(|| format!("scope: {queue} queued, {running} running, {waiting} waiting"))
}

/// When calls ended, the turn that they set off included: the first moment after
/// them at which no turn was pending.
struct Ends {
    calls: Vec<Vec<Span>>,
    /// From a request's first call to its last one's end.
    lives: Vec<Span>,
    resizes: Vec<Span>,
}

impl Ends {
    fn new(history: &History) -> Self {
        // For each stamp, the end of the first calm that begins no earlier.
        let mut calm = vec![history.end; history.end + 1];
        for (from, to) in &history.settled {
            calm[*from] = calm[*from].min(*to);
        }
        for at in (0..history.end).rev() {
            calm[at] = calm[at].min(calm[at + 1]);
        }
        let extended = |start, end: Stamp| (start, calm[end]);
        let calls: Vec<Vec<Span>> = history
            .requests
            .iter()
            .map(|r| r.calls.iter().map(|c| extended(c.start, c.end)).collect())
            .collect();
        let life = |spans: &Vec<Span>| {
            let last = spans.iter().map(|span| span.1).max();
            (spans[0].0, last.expect("it arrived"))
        };
        Ends {
            lives: calls.iter().map(life).collect(),
            calls,
            resizes: history
                .resizes
                .iter()
                .map(|r| extended(r.start, r.end))
                .collect(),
        }
    }

    /// The most that may have counted against a limit at one instant within the
    /// arrival of request `number`; `rank` for the rank's own limit.
    fn most(&self, history: &History, number: usize, limit: Limit, rank: Option<u32>) -> u64 {
        let (call, _) = history.requests[number].arrival();
        let mut counts = vec![0; call.end - call.start + 1];
        let mut add = |spans: &[Span]| {
            for (at, count) in counts.iter_mut().enumerate() {
                let now = call.start + at;
                *count += u64::from(spans.iter().any(|s| s.0 <= now && now <= s.1));
            }
        };
        for (other, request) in history.requests.iter().enumerate() {
            let (first, last) = self.lives[other];
            if other == number || last < call.start || first > call.end {
                continue;
            }
            let calls = &self.calls[other];
            add(calls);
            if rank.is_none() || request.rank == rank {
                add(holds(request, calls, limit).as_slice());
            }
        }
        for resize in &self.resizes {
            add(&[*resize]);
        }
        counts.into_iter().max().unwrap_or(0)
    }
}

/// From when until when a request may have counted against a limit.
fn holds(request: &Request, spans: &[Span], limit: Limit) -> Option<Span> {
    let end_of = |wanted: &[What]| {
        let at = request
            .calls
            .iter()
            .position(|c| wanted.contains(&c.what))?;
        Some(spans[at].1)
    };
    let (_, answer) = request.arrival();
    let until = match (limit, answer) {
        (_, Answer::Refused { .. }) => return None,
        (Limit::RequestQueue, Answer::Admitted) => return None,
        (Limit::RequestQueue, Answer::Queued) => end_of(&[What::Poll(true), What::Cancel])?,
        (Limit::EngineRequest, _) => end_of(&[What::Release, What::Cancel])?,
        (Limit::EngineRequestWaiting, _) => end_of(&[What::Token, What::Release, What::Cancel])?,
    };
    Some((spans[0].0, until))
}
