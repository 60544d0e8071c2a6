//! Whole loads through a worker and a simulated engine: every request ends,
//! both sides count the same, and nothing is left behind.
//!
//! The recorded load is that of the Azure LLM inference trace (conversation,
//! 2023): `TIDEGATE_TRACES` names a folder that has it, and without one those
//! tests say SKIPPED and pass. The generated load needs nothing.
//!
//! # The sizes
//!
//! The trace brings 5.5 requests a second, 16 in its busiest one, with 1155
//! prompt tokens and 211 output tokens on average. The simulated H100 takes 8 to
//! 10 ms for each output token of a small batch, about 2 s for such a request:
//! by Little's law the trace wants 11 places. It gets two ranks of four, so
//! that its calmer seconds enter at once, the others queue, and the queues of
//! two a rank overflow: all that a gate does, thousands of times. Two waiting a
//! rank make the first token matter as well. Replayed faster, the engine is
//! faster by the same factor and the picture stays, as far as the machine keeps
//! up; if it does not, the engine is slower and more are refused.

mod replay;
mod stack;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use replay::{RANKS, Replay};
use tidegate_gateway::load::{Arrivals, Mix, Planned, read_trace};

const TRACE: &str = "azure/AzureLLMInferenceTrace_conv.csv";

/// Where the trace is; says so if it is nowhere.
fn trace() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("TIDEGATE_TRACES") else {
        // Not eprintln: the harness would swallow it.
        let note = format!("SKIPPED: set TIDEGATE_TRACES to a folder with {TRACE}");
        writeln!(std::io::stderr(), "{note}").expect("stderr is writable");
        return None;
    };
    Some(Path::new(&folder).join(TRACE))
}

/// The trace at `speed`. Times and sizes are recorded; which ranks are named,
/// and which clients leave, is drawn.
fn recorded(path: &Path, speed: f64, leave: f64) -> Vec<Planned> {
    let drawn = Arrivals::new(mix(1.0, leave), 7);
    let rows = read_trace(path, speed).expect("the trace");
    rows.into_iter()
        .zip(drawn)
        .map(|(row, drawn)| Planned {
            rank: drawn.rank,
            leaves_after: drawn.leaves_after.map(|patience| patience.div_f64(speed)),
            ..row
        })
        .collect()
}

/// Half a minute with the trace's mean rate, in bursts, at `speed`.
fn generated(speed: f64, leave: f64) -> Vec<Planned> {
    Arrivals::new(mix(5.5, leave), 3)
        .take_while(|planned| planned.at < Duration::from_secs(30))
        .map(|planned| Planned {
            at: planned.at.div_f64(speed),
            leaves_after: planned.leaves_after.map(|patience| patience.div_f64(speed)),
            ..planned
        })
        .collect()
}

fn mix(rate: f64, leave: f64) -> Mix {
    Mix {
        rate,
        ranks: (0..RANKS).collect(),
        ranked: 0.5,
        leave,
        ..Mix::default()
    }
}

/// The picture that all of these draw: some enter at once, some queue, and some
/// are refused. How many of each is up to the machine's speed, too.
async fn replay(name: &str, speed: f64, requests: Vec<Planned>) -> Replay {
    let seen = Replay::run(speed, requests).await;
    writeln!(std::io::stderr(), "{name}: {seen}").expect("stderr is writable");
    seen.check();
    assert!(seen.gate.total(|lane| lane.admitted_direct) > 0, "{seen}");
    assert!(seen.gate.total(|lane| lane.admitted_queue) > 0, "{seen}");
    assert!(seen.tally.refusals() > 0, "{seen}");
    assert!(seen.tally.ok > 0, "{seen}");
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_load_at_5x() {
    replay("generated, 5x", 5.0, generated(5.0, 0.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_load_at_5x_of_which_a_third_leaves() {
    let seen = replay("generated, 5x, a third leaves", 5.0, generated(5.0, 0.33)).await;
    assert!(seen.tally.left > 0, "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_at_10x_with_clients_that_leave() {
    let Some(path) = trace() else { return };
    let requests = recorded(&path, 10.0, 0.05);
    replay("the trace, 10x, 5 % leave", 10.0, requests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_at_100x() {
    let Some(path) = trace() else { return };
    replay("the trace, 100x", 100.0, recorded(&path, 100.0, 0.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_traces_first_five_minutes_at_1x() {
    let Some(path) = trace() else { return };
    let mut requests = recorded(&path, 1.0, 0.0);
    requests.retain(|planned| planned.at < Duration::from_secs(300));
    replay("the trace, 5 minutes, 1x", 1.0, requests).await;
}
