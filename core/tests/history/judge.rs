//! Limits, order and conservation.

use tidegate::{Lane, Snapshot};

use super::{Answer, History, Request, Stamp, What};

/// Counts over time of requests that certainly hold something.
struct Held(Vec<i64>);

impl Held {
    fn new<'a>(
        history: &History,
        requests: impl Iterator<Item = &'a Request>,
        until: impl Fn(&Request) -> Stamp,
    ) -> Self {
        let mut change = vec![0; history.end + 1];
        for request in requests {
            if let Some(entry) = request.entry() {
                let (from, to) = (entry.end, until(request));
                if from < to {
                    change[from] += 1;
                    change[to] -= 1;
                }
            }
        }
        let mut now = 0;
        Held(
            change
                .into_iter()
                .map(|by| {
                    now += by;
                    now
                })
                .collect(),
        )
    }
}

fn release(request: &Request) -> Stamp {
    request.find(What::Release).expect("all let go").start
}

fn token(request: &Request) -> Stamp {
    let token = request.find(What::Token).map(|call| call.start);
    token.unwrap_or_else(|| release(request))
}

/// Limits hold: whoever entered did so at an instant when those who certainly held
/// something left room under a limit that may have been in force.
pub fn limits(history: &History) -> Result<(), String> {
    let worker = history.plan.ranks.max(1);
    check(history, "the worker", u64::from(worker), |_| true)?;
    for rank in 0..history.plan.ranks {
        check(history, &format!("rank {rank}"), 1, |request| {
            request.rank == Some(rank)
        })?;
    }
    Ok(())
}

fn check(
    history: &History,
    place: &str,
    times: u64,
    of_place: impl Fn(&Request) -> bool,
) -> Result<(), String> {
    let mine = || history.requests.iter().filter(|r| of_place(r));
    let running = Held::new(history, mine(), release);
    let waiting = Held::new(history, mine(), token);
    for request in mine() {
        let Some(entry) = request.entry() else {
            continue;
        };
        // A queued one got its capacity at any time since it arrived.
        let from = request.calls[0].start;
        for (what, held, limit) in [("running", &running, 0), ("waiting", &waiting, 1)] {
            let least = held.0[from..entry.end].iter().min().unwrap() + 1;
            let most = times * u64::from(largest_limit(history, limit, from, entry.end));
            if least as u64 > most {
                return Err(format!(
                    "{place}: at least {least} were {what} under {most}: {request:?}"
                ));
            }
        }
    }
    Ok(())
}

/// The largest limit that may have been in force between two stamps.
fn largest_limit(history: &History, limit: usize, from: Stamp, to: Stamp) -> u32 {
    let of = |settings: &tidegate::Settings| {
        [
            settings.engine_request_limit,
            settings.engine_request_waiting_limit,
        ][limit]
            .expect("all are set")
    };
    let mut before = history.plan.limits[limit];
    let mut largest = 0;
    // One thread makes all changes, one after another.
    for resize in &history.resizes {
        if resize.end < from {
            before = of(&resize.limits);
        } else if resize.start < to {
            largest = largest.max(of(&resize.limits));
        }
    }
    largest.max(before)
}

/// A request that started after another of its lane was queued never enters
/// before it: the other was not seen waiting afterwards.
pub fn order(history: &History) -> Result<(), String> {
    for older in &history.requests {
        let (arrival, Answer::Queued) = older.arrival() else {
            continue;
        };
        let waiting = |call: &&super::Call| call.what == What::Poll(false);
        let Some(last) = older.calls.iter().rfind(waiting) else {
            continue;
        };
        for younger in history.requests.iter().filter(|r| r.rank == older.rank) {
            let (came, _) = younger.arrival();
            let overtook = younger
                .entry()
                .is_some_and(|entry| came.start > arrival.end && entry.end < last.start);
            if overtook {
                return Err(format!("{younger:?}\novertook {older:?}"));
            }
        }
    }
    Ok(())
}

/// Everything is gone, and the counters say what the threads saw.
pub fn conservation(history: &History, at_end: &Snapshot) -> Result<(), String> {
    for lane in &at_end.lanes {
        let rank = match lane.lane {
            Lane::Rank(id) => Some(id),
            Lane::Unspecified => None,
        };
        let mine = || history.requests.iter().filter(|r| r.rank == rank);
        let count = |f: &dyn Fn(&Request) -> bool| mine().filter(|r| f(r)).count() as u64;
        let seen = [
            count(&|_| true),
            count(&|r| r.arrival().1 == Answer::Admitted),
            count(&|r| r.find(What::Poll(true)).is_some()),
            count(&|r| r.find(What::Cancel).is_some()),
            count(&|r| matches!(r.arrival().1, Answer::Refused { .. })),
            0,
            0,
            0,
            0,
        ];
        let counted = [
            lane.received,
            lane.admitted_direct,
            lane.admitted_queue,
            lane.cancelled,
            lane.rejected(),
            lane.running,
            lane.waiting,
            lane.queued,
            lane.offered,
        ];
        if seen != counted {
            return Err(format!("{lane:?} counts {counted:?}, threads saw {seen:?}"));
        }
    }
    Ok(())
}

/// At rest no queued request fits, and what is held is what is counted.
pub fn at_rest(seen: &Snapshot, permits: usize, tickets: usize) -> Result<(), String> {
    let [r, w] = [
        seen.limits.engine_request_limit,
        seen.limits.engine_request_waiting_limit,
    ]
    .map(u64::from);
    let n = seen.ranks();
    let room = seen.worker.running < n * r && seen.worker.waiting < n * w;
    for lane in &seen.lanes {
        let own = lane.lane == Lane::Unspecified || (lane.running < r && lane.waiting < w);
        if lane.queued > 0 && room && own {
            return Err(format!("a queued request fits at rest: {seen:?}"));
        }
    }
    let offered = seen.total(|lane| lane.offered);
    let held = (seen.worker.running - offered, seen.worker.queued + offered);
    if held != (permits as u64, tickets as u64) {
        return Err(format!(
            "{permits} permits and {tickets} tickets are held, {held:?} counted: {seen:?}"
        ));
    }
    Ok(())
}
