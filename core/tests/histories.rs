//! Random concurrent runs, judged by their histories. Ten seconds, or
//! `TIDEGATE_HISTORY_SECONDS`; `TIDEGATE_HISTORY_SEED` repeats one run's calls,
//! though not how its threads met. Built with `--cfg tidegate_stall`, threads
//! give way in the middle of operations, and far more happens on few cores.

mod common;
mod history;

use std::time::{Duration, Instant};

use history::{Plan, Random, judge, record, refusals};

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect("a number"))
}

fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed);
    for _ in 0..8 {
        random.below(2);
    }
    // Short ones show what was lost at rest; long ones, who was overtaken.
    let calls = [4, 16, 200][random.below(3)];
    Plan {
        seed,
        threads: 2 + random.below(7),
        ranks: random.below(4) as u32,
        limits: [1, 1, 0].map(|least| least + random.below(3) as u32),
        resizes: random.below(4) == 0,
        calls: 2 + random.below(calls),
    }
}

/// Runs a plan and judges its history.
fn judged(plan: Plan) -> usize {
    let (history, end) = record::run(plan, |seen, permits, tickets| {
        if let Err(wrong) = judge::at_rest(seen, permits, tickets) {
            // The clients wait for nothing but this.
            eprintln!("{plan:?}: {wrong}");
            std::process::abort();
        }
    });
    let verdict = judge::limits(&history)
        .and_then(|()| judge::order(&history))
        .and_then(|()| judge::conservation(&history, &end))
        .and_then(|()| refusals::honest(&history));
    if let Err(wrong) = verdict {
        panic!("{plan:?}\n{wrong}");
    }
    history.requests.iter().map(|r| r.calls.len()).sum()
}

#[test]
fn histories_of_random_runs_are_right() {
    if let Some(seed) = number("TIDEGATE_HISTORY_SEED") {
        (0..1000).for_each(|_| {
            judged(plan(seed));
        });
        return;
    }
    let seconds = number("TIDEGATE_HISTORY_SECONDS").unwrap_or(10);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut runs, mut calls) = (0_u64, 0);
    while Instant::now() < until {
        runs += 1;
        calls += judged(plan(runs));
    }
    println!("{runs} runs of {calls} calls");
}
