//! Honest refusals: for the limit that is named there was an instant within the
//! call at which those who held it, or may have, and the other calls in progress
//! were as many.

use tidegate::{Limit, Scope};

use super::{Answer, Call, History, Request, Stamp, What};

/// From, to: the end is included.
type Span = (Stamp, Stamp);

pub fn honest(history: &History) -> Result<(), String> {
    let ends = Ends::new(history);
    for (number, request) in history.requests.iter().enumerate() {
        let (call, answer) = request.arrival();
        let moving = |span: Span| span.0 <= call.end && call.start <= span.1;
        if ends.resizes.iter().any(|span| moving(*span)) {
            // While limits move, which of them is in force?
            continue;
        }
        let most = |limit, rank| ends.most(history, number, limit, rank);
        let complaint = match answer {
            Answer::Admitted => None,
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

/// When calls ended, the turn that they set off included: another call that was
/// in progress may have run it.
struct Ends {
    calls: Vec<Vec<Span>>,
    /// From a request's first call to its last one's end.
    lives: Vec<Span>,
    resizes: Vec<Span>,
}

impl Ends {
    fn new(history: &History) -> Self {
        let all = history.requests.iter().flat_map(|r| &r.calls);
        let mut spans: Vec<Span> = all.map(|call| (call.start, call.end)).collect();
        spans.extend(history.resizes.iter().map(|r| (r.start, r.end)));
        // At each stamp, when the last of the calls in progress ends.
        let mut last = vec![0; history.end + 1];
        for (start, end) in spans {
            last[start..=end]
                .iter_mut()
                .for_each(|l| *l = (*l).max(end));
        }
        let extended = |start, end: Stamp| (start, last[end]);
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
            let mut spans = self.calls[other].clone();
            if rank.is_none() || request.rank == rank {
                let held = holds(request, &spans, limit);
                spans.extend(held);
            }
            add(&spans);
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
