//! A worker, as its metrics tell it, whatever their prefix.

use std::collections::BTreeMap;

use serde::Serialize;

use super::histogram::Histogram;
use crate::scrape::exposition::{Page, Sample};

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

/// A policy's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Its decisions are only counted.
    pub observes: bool,
    /// The engine's state is known.
    pub fresh: bool,
    /// The age of the state, in seconds.
    pub age_seconds: f64,
    /// Shares of the GPU in use, as far as they are known.
    pub gpu: BTreeMap<String, f64>,
    /// Requests that it lets run.
    pub limit: u64,
    /// The share of the limit that the tuner uses.
    pub target: f64,
    /// Its classes, by name: pages have series in any order.
    pub classes: Vec<Class>,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Requests that are held.
    pub held: u64,
    /// Answers per second within its promise.
    pub goodput: f64,
    /// Share of answers within its promise; `None` without answers.
    pub attainment: Option<f64>,
    /// Seconds to the first token: median, 99 and 99.9 of a hundred.
    pub first_token: [Option<f64>; 3],
    /// Requests admitted.
    pub admitted: u64,
    /// Requests refused, by reason; those that never occurred are left out.
    pub refused: BTreeMap<String, u64>,
}

/// The samples whose names begin with one prefix.
struct Named<'p> {
    page: &'p Page,
    prefix: &'p str,
}

impl<'p> Named<'p> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'p Sample> {
        let (prefix, name) = (self.prefix, name.to_owned());
        let named = move |sample: &&Sample| sample.name.strip_prefix(prefix) == Some(&name);
        self.page.samples.iter().filter(named)
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.all(name).next().map(|sample| sample.value)
    }

    fn whole(&self, name: &str) -> u64 {
        self.value(name).map_or(0, whole)
    }
}

/// Counts are whole and not below 0, whatever a page says.
pub(super) fn whole(value: f64) -> u64 {
    // The conversion stops at the bounds, and what is no number is 0.
    value as u64
}

fn label<'s>(sample: &'s Sample, name: &str) -> &'s str {
    sample.labels.get(name).map_or("", String::as_str)
}

impl Gate {
    /// The gate that a page is of, if it is one's. `worker` is its id.
    #[must_use]
    pub fn of(page: &Page, worker: &str) -> Option<Self> {
        let prefix = page.samples.iter().find_map(|sample| {
            let ranked = sample.labels.contains_key("dp_rank");
            sample.name.strip_suffix(RECEIVED).filter(|_| ranked)
        })?;
        let named = Named { page, prefix };
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
            policy: policy(&named),
        })
    }

    /// The sum of one count over all lanes.
    pub fn total(&self, count: impl Fn(&Lane) -> u64) -> u64 {
        self.lanes.iter().map(count).fold(0, u64::saturating_add)
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

fn policy(named: &Named) -> Option<Policy> {
    let fresh = named.value("policy_state_fresh")? == 1.0;
    let known = |sample: &&Sample| sample.value.is_finite();
    let gpu = named.all("policy_gpu_share").filter(known);
    let gpu = gpu.map(|sample| (label(sample, "of").to_owned(), sample.value));
    let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
    for sample in named.all("policy_held_count") {
        let name = label(sample, "class");
        let class = classes.entry(name).or_default();
        class.name = name.to_owned();
        class.held = whole(sample.value);
    }
    let mut tell = |metric: &str, take: &dyn Fn(&mut Class, &Sample)| {
        for sample in named.all(metric).filter(known) {
            if let Some(class) = classes.get_mut(label(sample, "class")) {
                take(class, sample);
            }
        }
    };
    tell("policy_goodput", &|class, sample| {
        class.goodput = sample.value
    });
    tell("policy_attainment", &|class, sample| {
        class.attainment = Some(sample.value);
    });
    tell("policy_first_token_seconds", &|class, sample| {
        let at = ["0.5", "0.99", "0.999"];
        let at = at.iter().position(|at| *at == label(sample, "quantile"));
        if let Some(at) = at {
            class.first_token[at] = Some(sample.value);
        }
    });
    tell("policy_decision_total", &|class, sample| {
        let (count, reason) = (whole(sample.value), label(sample, "reason"));
        match label(sample, "decision") {
            "admitted" => class.admitted = count,
            "refused" if count > 0 => drop(class.refused.insert(reason.to_owned(), count)),
            _ => {}
        }
    });
    Some(Policy {
        observes: named.value("policy_observes") == Some(1.0),
        fresh,
        age_seconds: named.value("policy_state_age_seconds").unwrap_or_default(),
        gpu: gpu.collect(),
        limit: named.whole("policy_engine_request_limit"),
        target: named.value("policy_utilisation_target").unwrap_or_default(),
        classes: classes.into_values().collect(),
    })
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
p_policy_state_fresh 1
p_policy_gpu_share{of="memory"} 0.5
p_policy_gpu_share{of="utilisation"} NaN
p_policy_held_count{class="gold"} 1
p_policy_held_count{class="bronze"} 0
p_policy_goodput{class="gold"} 2.5
p_policy_attainment{class="gold"} 0.9
p_policy_attainment{class="bronze"} NaN
p_policy_first_token_seconds{class="gold",quantile="0.99"} 0.25
p_policy_decision_total{class="gold",decision="refused",reason="queue_full"} 7
p_policy_decision_total{class="gold",decision="refused",reason="too_large"} 0
p_policy_decision_total{class="gold",decision="admitted",reason=""} 9
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
    fn a_policy_tells_what_is_known_and_nothing_else() {
        let policy = Gate::of(&read(PAGE), "").unwrap().policy.unwrap();
        assert!(policy.fresh && !policy.observes);
        assert_eq!(policy.gpu, BTreeMap::from([("memory".to_owned(), 0.5)]));
        let [bronze, gold] = &policy.classes[..] else {
            panic!("{:?}", policy.classes);
        };
        assert_eq!(
            (gold.held, gold.goodput, gold.attainment),
            (1, 2.5, Some(0.9))
        );
        assert_eq!(gold.first_token, [None, Some(0.25), None]);
        assert_eq!(gold.refused, BTreeMap::from([("queue_full".to_owned(), 7)]));
        assert_eq!((gold.admitted, bronze.attainment), (9, None));
    }

    #[test]
    fn a_page_of_something_else_is_no_gate() {
        assert_eq!(Gate::of(&read("vllm:num_requests_running 3\n"), ""), None);
        assert_eq!(Gate::of(&read("x_request_receive_total 3\n"), ""), None);
        let odd = "p_request_receive_total{dp_rank=\"-\"} NaN\n";
        assert_eq!(Gate::of(&read(odd), "").unwrap().lanes[0].received, 0);
    }
}
