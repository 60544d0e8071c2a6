//! A worker, as its metrics tell it, whatever their prefix.

use serde::Serialize;

use super::histogram::Histogram;
use super::named::{Named, label, whole};
use super::policy::{Class, Policy};
use crate::scrape::exposition::Page;

/// The counter that every gate has, and by which the prefix is known.
const RECEIVED: &str = "request_receive_total";

/// A worker's gate, and its policy if it has one. Counters count from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gate {
    /// Its id at the frontend; empty if it is the server itself.
    pub worker: String,
    /// Ranks that share the worker's capacity, at least 1.
    pub ranks: u64,
    /// The limits in force, per rank.
    pub limits: Limits,
    /// Nobody set the engine request limit and the engine did not tell its size.
    pub fallback: bool,
    /// Its lanes, *unspecified* last.
    pub lanes: Vec<Lane>,
    /// Time in the gate's queue, of those that were then admitted.
    #[serde(skip)]
    pub queue_wait: Histogram,
    /// What its policy tells.
    pub policy: Option<Policy>,
}

/// Limits of each rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Limits {
    /// The engine request limit.
    pub running: u64,
    /// The engine request waiting limit.
    pub waiting: u64,
    /// The request queue limit.
    pub queued: u64,
}

/// A lane's counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lane {
    /// A rank's id, or `unspecified`.
    pub rank: String,
    /// Admitted and not finished.
    pub running: u64,
    /// The part of them whose first token has not come.
    pub waiting: u64,
    /// In the gate's queue.
    pub queued: u64,
    /// Every request once.
    pub received: u64,
    /// Admitted at once.
    pub direct: u64,
    /// Admitted out of the queue.
    pub from_queue: u64,
    /// Refused for the rank.
    pub rejected_rank: u64,
    /// Refused for the worker.
    pub rejected_worker: u64,
    /// Left before admission.
    pub cancelled: u64,
}

impl Gate {
    /// The gate that a page is of, if it is one's. `worker` is its id.
    #[must_use]
    pub fn of(page: &Page, worker: &str) -> Option<Self> {
        let prefix = page.samples.iter().find_map(|sample| {
            let ranked = sample.labels.contains_key("dp_rank");
            sample.name.strip_suffix(RECEIVED).filter(|_| ranked)
        })?;
        let named = Named::new(page, prefix);
        let mut lanes: Vec<Lane> = Vec::new();
        for sample in named.all(RECEIVED) {
            let rank = label(sample, "dp_rank").to_owned();
            lanes.push(lane(&named, rank));
        }
        // Numbers by value, *unspecified* after them.
        lanes.sort_by_key(|lane| lane.rank.parse::<u32>().map_or(u64::MAX, u64::from));
        let waits = format!("{prefix}queue_wait_seconds");
        Some(Self {
            worker: worker.to_owned(),
            ranks: (lanes.len() as u64).saturating_sub(1).max(1),
            limits: Limits {
                running: named.whole("engine_request_limit"),
                waiting: named.whole("engine_request_waiting_limit"),
                queued: named.whole("request_queue_limit"),
            },
            fallback: named.value("engine_request_limit_is_fallback") == Some(1.0),
            lanes,
            queue_wait: Histogram::of(page, &waits, |_, _| true),
            policy: Policy::of(&named),
        })
    }

    /// The sum of one count over all lanes.
    pub fn total(&self, count: impl Fn(&Lane) -> u64) -> u64 {
        self.lanes.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Requests admitted, at once or out of the queue.
    pub fn admitted(&self) -> u64 {
        self.total(|lane| lane.direct + lane.from_queue)
    }

    /// Requests that the gate refused.
    pub fn rejected(&self) -> u64 {
        self.total(|lane| lane.rejected_rank + lane.rejected_worker)
    }

    /// Requests that its policy refused, and not only counted as refused.
    pub fn refused_by_policy(&self) -> u64 {
        let policy = self.policy.iter().filter(|policy| !policy.observes);
        let classes = policy.flat_map(|policy| &policy.classes);
        classes.map(Class::refusals).fold(0, u64::saturating_add)
    }
}

fn lane(named: &Named, rank: String) -> Lane {
    let count = |name: &str, further: Option<(&str, &str)>| {
        let of = named.all(name).find(|sample| {
            label(sample, "dp_rank") == rank
                && further.is_none_or(|(name, value)| label(sample, name) == value)
        });
        of.map_or(0, |sample| whole(sample.value))
    };
    Lane {
        running: count("engine_request_count", None),
        waiting: count("engine_request_waiting_count", None),
        queued: count("request_queue_count", None),
        received: count(RECEIVED, None),
        direct: count("request_admit_total", Some(("source", "direct"))),
        from_queue: count("request_admit_total", Some(("source", "queue"))),
        rejected_rank: count("rejection_total", Some(("scope", "rank"))),
        rejected_worker: count("rejection_total", Some(("scope", "worker"))),
        cancelled: count("cancellation_total", None),
        rank,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::exposition::read;

    const PAGE: &str = r#"
p_engine_request_limit{worker_type="decode"} 8
p_request_queue_limit{worker_type="decode"} 16
p_request_receive_total{dp_rank="unspecified"} 3
p_request_receive_total{dp_rank="10"} 2
p_request_receive_total{dp_rank="9"} 4
p_engine_request_count{dp_rank="9"} 2
p_request_admit_total{dp_rank="9",source="direct"} 3
p_request_admit_total{dp_rank="9",source="queue"} 1
p_rejection_total{dp_rank="9",scope="rank"} 5
p_queue_wait_seconds_bucket{dp_rank="9",le="1"} 1
p_queue_wait_seconds_bucket{dp_rank="9",le="+Inf"} 1
"#;

    #[test]
    fn a_gate_is_read_whatever_its_prefix() {
        let gate = Gate::of(&read(PAGE), "").unwrap();
        assert_eq!(
            (gate.ranks, gate.limits.running, gate.limits.queued),
            (2, 8, 16)
        );
        let ranks: Vec<&str> = gate.lanes.iter().map(|lane| lane.rank.as_str()).collect();
        assert_eq!(ranks, ["9", "10", "unspecified"]);
        let nine = &gate.lanes[0];
        assert_eq!((nine.running, nine.direct, nine.from_queue), (2, 3, 1));
        assert_eq!((nine.rejected_rank, nine.rejected_worker), (5, 0));
        assert_eq!(gate.total(|lane| lane.received), 9);
        assert_eq!(gate.queue_wait.count(), 1.0);
    }

    #[test]
    fn a_page_of_something_else_is_no_gate() {
        assert_eq!(Gate::of(&read("vllm:num_requests_running 3\n"), ""), None);
        assert_eq!(Gate::of(&read("x_request_receive_total 3\n"), ""), None);
        let odd = "p_request_receive_total{dp_rank=\"-\"} NaN\n";
        assert_eq!(Gate::of(&read(odd), "").unwrap().lanes[0].received, 0);
    }
}
