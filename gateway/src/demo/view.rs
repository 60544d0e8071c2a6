//! What the demo says: the opening, the lines while it runs, the summary.

use std::fmt::Write as _;
use std::net::SocketAddr;

use tidegate::{Gate, Snapshot};

use super::stack::Stack;
use crate::frontend::hops::Ended;
use crate::frontend::{Outcome, Tallies};
use crate::load::Tally;
use crate::page;

/// The opening: what runs, how to talk to it, and what to look for.
pub fn opening(stack: &Stack, load: Option<f64>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "Tidegate demo: an inference engine can run so many requests at once. The gate before"
    );
    let _ = writeln!(
        out,
        "it lets in what fits, queues some of the rest, and refuses what is too much at once. The"
    );
    let _ = writeln!(
        out,
        "frontend sends what one worker refuses to another, and says so when all are full.\n"
    );
    for moved in &stack.moved {
        let _ = writeln!(
            out,
            "  {} is in use, so {} takes its place",
            moved.wanted, moved.taken
        );
    }
    if !stack.moved.is_empty() {
        out.push('\n');
    }
    let url = stack.frontend.url();
    let _ = writeln!(out, "Watch it in a browser:  {url}{}", page::serve::PATH);
    let _ = writeln!(out, "or in a terminal:       tidegate top --url {url}\n");
    let _ = writeln!(out, "  frontend {url}");
    for pair in &stack.pairs {
        let (worker, engine) = (pair.worker.url(), pair.engine.url());
        let _ = writeln!(out, "  worker {worker}  ->  simulated engine {engine}");
    }
    if let Some(pair) = stack.pairs.first() {
        let now = pair.worker.gate().snapshot();
        let _ = writeln!(
            out,
            "  each worker: {} ranks; per rank {} requests in the engine, {} in the queue\n",
            now.ranks(),
            now.limits.engine_request_limit,
            now.limits.request_queue_limit,
        );
        let _ = writeln!(out, "Send one yourself:\n  {}", curl(&url));
        let worker = pair.worker.url();
        let _ = writeln!(
            out,
            "What the frontend and a gate count:\n  curl {url}/metrics\n  curl {worker}/metrics"
        );
    }
    match load {
        Some(rate) => {
            let _ = writeln!(
                out,
                "\nLoad: {rate} requests/s on average, in bursts. Ctrl-C stops everything.\n"
            );
        }
        None => {
            let _ = writeln!(
                out,
                "\nNo load is sent: --no-load. Ctrl-C stops everything.\n"
            );
        }
    }
    out
}

/// A request that streams, ready to paste.
fn curl(url: &str) -> String {
    format!(
        "curl -N {url}/v1/chat/completions -H 'content-type: application/json' \
         -d '{{\"model\":\"sim\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'"
    )
}

/// One line a worker, one for the frontend, and one for the load if there is one.
pub fn lines(
    gates: &[(SocketAddr, Gate)],
    frontend: &(SocketAddr, Tallies),
    tally: Option<&Tally>,
) -> Vec<String> {
    let workers = gates
        .iter()
        .map(|(address, gate)| worker_line(*address, gate));
    let frontend = std::iter::once(frontend_line(frontend));
    let load = tally.map(|tally| format!("load            {}", tally.line()));
    workers.chain(frontend).chain(load).collect()
}

fn frontend_line((address, tallies): &(SocketAddr, Tallies)) -> String {
    let refused = [Ended::RefusedWorker, Ended::RefusedRank];
    let refused: u64 = refused.into_iter().map(|ended| tallies.tries(ended)).sum();
    format!(
        "frontend :{}  answered {:>5}  refused by workers {:>4}, by all {:>4}  left {:>3}",
        address.port(),
        tallies.ended(Outcome::Ok),
        refused,
        tallies.ended(Outcome::Rejected),
        tallies.ended(Outcome::Left),
    )
}

fn worker_line(address: SocketAddr, gate: &Gate) -> String {
    let now = gate.snapshot();
    let capacity = |limit: u32| now.ranks() * u64::from(limit);
    format!(
        "worker   :{}  running {}  waiting {}  queued {}  admitted {:>5}  refused {:>4}  left {:>3}",
        address.port(),
        of(
            now.worker.running,
            capacity(now.limits.engine_request_limit)
        ),
        of(
            now.worker.waiting,
            capacity(now.limits.engine_request_waiting_limit)
        ),
        of(now.worker.queued, capacity(now.limits.request_queue_limit)),
        now.total(|lane| lane.admitted()),
        now.total(|lane| lane.rejected()),
        now.total(|lane| lane.cancelled),
    )
}

/// A count out of its limit, as wide whatever the count.
fn of(count: u64, limit: u64) -> String {
    let limit = limit.to_string();
    format!("{count:>width$}/{limit}", width = limit.len())
}

/// What became of everything, worker by worker.
pub fn summary(
    gates: &[(SocketAddr, Gate)],
    frontend: &(SocketAddr, Tallies),
    tally: Option<&Tally>,
) -> String {
    let mut out = String::from("What the gates did\n");
    let _ = writeln!(
        out,
        "  {:<24}{:>10}{:>11}{:>11}{:>9}{:>9}",
        "worker", "received", "at once", "via queue", "refused", "left"
    );
    for (address, gate) in gates {
        let _ = writeln!(
            out,
            "  {:<24}{}",
            address.to_string(),
            totals(&gate.snapshot())
        );
    }
    let _ = writeln!(out, "\nWhat the frontend did");
    let (_, tallies) = frontend;
    let counted = Outcome::ALL.map(|outcome| (outcome.label(), tallies.ended(outcome)));
    for (what, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "  {:<24}{count:>10}", what.replace('_', " "));
    }
    let tries = Ended::ALL.map(|ended| tallies.tries(ended));
    let tries: u64 = tries.into_iter().sum();
    let _ = writeln!(out, "  {:<24}{tries:>10}", "tries at workers");
    if let Some(tally) = tally {
        let _ = write!(out, "\nWhat the clients saw\n{tally}");
    }
    out
}

fn totals(now: &Snapshot) -> String {
    format!(
        "{:>10}{:>11}{:>11}{:>9}{:>9}",
        now.total(|lane| lane.received),
        now.total(|lane| lane.admitted_direct),
        now.total(|lane| lane.admitted_queue),
        now.total(|lane| lane.rejected()),
        now.total(|lane| lane.cancelled),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_counts_against_the_workers_limits() {
        let gate = Gate::builder()
            .engine_request_limit(2)
            .request_queue_limit(10)
            .build()
            .expect("in range");
        gate.report_engine(tidegate::EngineReport {
            ranks: vec![0, 1],
            max_num_seqs: Some(2),
        })
        .expect("usable");
        let permit = gate.try_admit(Some(0)).expect("room");
        let line = worker_line("127.0.0.1:8100".parse().expect("an address"), &gate);
        assert!(
            line.starts_with("worker   :8100  running 1/4  waiting 1/4  queued  0/20"),
            "{line}"
        );
        assert!(line.contains("admitted     1  refused    0"), "{line}");
        drop(permit);
    }

    #[test]
    fn the_curl_line_carries_json() {
        let line = curl("http://127.0.0.1:8100");
        let body = line
            .split("-d '")
            .nth(1)
            .and_then(|rest| rest.strip_suffix('\''))
            .expect("a body");
        let value: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(value["stream"], true);
    }
}
