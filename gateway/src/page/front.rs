//! A frontend, as its metrics tell it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::histogram::Histogram;
use super::named::whole;
use super::policy::{Class, Queue};
use crate::scrape::exposition::{Page, Sample};

const PREFIX: &str = "dynamo_frontend_";

/// A frontend. Counters count from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Front {
    /// Requests whose answer has not ended.
    pub in_flight: u64,
    /// Requests that ended, by how.
    pub outcomes: BTreeMap<String, u64>,
    /// Time to the first token.
    #[serde(skip)]
    pub first_token: Histogram,
    /// Time to the end of the answer, of those that were answered.
    #[serde(skip)]
    pub duration: Histogram,
    /// Its workers, by id.
    pub workers: Vec<Member>,
    /// What its policy holds, by model: none without a policy or before a request.
    pub queues: Vec<Queue>,
}

/// A worker, as the frontend sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub url: String,
    /// `free`, `busy`, `marked` or `unwell`.
    pub state: String,
    /// Ranks over a threshold, by its name; those without any are left out.
    pub over: BTreeMap<String, u64>,
    /// What is heard of it is too old to count.
    pub stale: bool,
    /// Age of the newest load sample, in seconds, if there is one.
    pub age_seconds: Option<f64>,
    /// KV blocks in use, over its ranks.
    pub blocks: u64,
    /// KV blocks in all, over its ranks; 0 if that is not known.
    pub blocks_total: u64,
    /// Prompt tokens whose first output token has not come, over its ranks.
    pub prefill_tokens: u64,
    /// Requests sent there, by how that ended.
    pub results: BTreeMap<String, u64>,
}

impl Member {
    /// How many ended so.
    #[must_use]
    pub fn result(&self, result: &str) -> u64 {
        self.results.get(result).copied().unwrap_or_default()
    }
}

impl Front {
    /// The frontend that a page is of, if it is one's.
    #[must_use]
    pub fn of(page: &Page) -> Option<Self> {
        let mut front = Self::default();
        let mut workers: BTreeMap<String, Member> = BTreeMap::new();
        let mut any = false;
        for sample in &page.samples {
            let Some(name) = sample.name.strip_prefix(PREFIX) else {
                continue;
            };
            match name.strip_prefix("worker_") {
                Some(name) => {
                    any = true;
                    if let Some(id) = sample.labels.get("worker_id") {
                        workers.entry(id.clone()).or_default().take(name, sample);
                    }
                }
                None => any |= front.take(name, sample),
            }
        }
        let answered = |label: &str, value: &str| label != "outcome" || value == "ok";
        let named = |name: &str| format!("{PREFIX}{name}");
        front.first_token = Histogram::of(page, &named("time_to_first_token_seconds"), answered);
        front.duration = Histogram::of(page, &named("request_duration_seconds"), answered);
        let numbered = |id: &str| id.parse::<u64>().unwrap_or(u64::MAX);
        front.workers = workers
            .into_iter()
            .map(|(id, it)| Member { id, ..it })
            .collect();
        front.workers.sort_by_key(|worker| numbered(&worker.id));
        front.queues = Queue::all(page, PREFIX);
        any.then_some(front)
    }

    /// Takes in a sample, if it is known.
    fn take(&mut self, name: &str, sample: &Sample) -> bool {
        match name {
            "inflight_requests" => self.in_flight = whole(sample.value),
            "requests_total" => {
                let outcome = sample.labels.get("outcome").cloned().unwrap_or_default();
                let count = self.outcomes.entry(outcome).or_default();
                *count = count.saturating_add(whole(sample.value));
            }
            _ => return false,
        }
        true
    }

    /// Requests that its policy refused, so that clients were told.
    #[must_use]
    pub fn refused_by_policy(&self) -> u64 {
        let queues = self.queues.iter().filter(|queue| !queue.observes);
        let classes = queues.flat_map(|queue| &queue.classes);
        classes.map(Class::refusals).fold(0, u64::saturating_add)
    }

    /// How many ended so.
    #[must_use]
    pub fn outcome(&self, outcome: &str) -> u64 {
        self.outcomes.get(outcome).copied().unwrap_or_default()
    }
}

impl Member {
    fn take(&mut self, name: &str, sample: &Sample) {
        let label = |name: &str| sample.labels.get(name).cloned().unwrap_or_default();
        let count = whole(sample.value);
        let add = |sum: &mut u64| *sum = sum.saturating_add(count);
        match name {
            "healthy" => self.url = label("url"),
            "state" if count == 1 => self.state = label("state"),
            "ranks_over_threshold" if count > 0 => {
                self.over.insert(label("threshold"), count);
            }
            "load_stale" => self.stale = count == 1,
            "load_age_seconds" => {
                let newest = self
                    .age_seconds
                    .map_or(sample.value, |age| age.min(sample.value));
                self.age_seconds = Some(newest);
            }
            "active_decode_blocks" => add(&mut self.blocks),
            "kv_total_blocks" => add(&mut self.blocks_total),
            "active_prefill_tokens" => add(&mut self.prefill_tokens),
            "requests_total" => add(self.results.entry(label("result")).or_default()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrape::exposition::read;

    #[test]
    fn workers_and_outcomes_are_read() {
        let page = read(
            r#"
dynamo_frontend_inflight_requests 3
dynamo_frontend_requests_total{model="a",endpoint="x",outcome="ok"} 4
dynamo_frontend_requests_total{model="b",endpoint="x",outcome="ok"} 5
dynamo_frontend_requests_total{model="b",endpoint="x",outcome="rejected"} 1
dynamo_frontend_request_duration_seconds_bucket{model="b",outcome="ok",le="+Inf"} 9
dynamo_frontend_request_duration_seconds_bucket{model="b",outcome="rejected",le="+Inf"} 1
dynamo_frontend_worker_healthy{worker_id="10",url="http://h:2"} 1
dynamo_frontend_worker_healthy{worker_id="9",url="http://h:1"} 0
dynamo_frontend_worker_state{worker_id="9",state="unwell"} 1
dynamo_frontend_worker_state{worker_id="9",state="free"} 0
dynamo_frontend_worker_ranks_over_threshold{worker_id="10",threshold="t"} 2
dynamo_frontend_worker_active_decode_blocks{dp_rank="0",worker_id="10"} 7
dynamo_frontend_worker_active_decode_blocks{dp_rank="1",worker_id="10"} 8
dynamo_frontend_worker_kv_total_blocks{dp_rank="1",worker_id="10"} 90
dynamo_frontend_worker_requests_total{worker_id="10",result="answered"} 6
"#,
        );
        let front = Front::of(&page).unwrap();
        assert_eq!((front.in_flight, front.outcome("ok")), (3, 9));
        assert_eq!(
            (front.outcome("rejected"), front.duration.count()),
            (1, 9.0)
        );
        let [nine, ten] = &front.workers[..] else {
            panic!("{:?}", front.workers);
        };
        assert_eq!(
            (nine.url.as_str(), nine.state.as_str()),
            ("http://h:1", "unwell")
        );
        assert_eq!(
            (ten.blocks, ten.blocks_total, ten.result("answered")),
            (15, 90, 6)
        );
        assert_eq!(ten.over["t"], 2);
    }

    #[test]
    fn a_page_of_something_else_is_no_frontend() {
        assert_eq!(Front::of(&read("a 1\n")), None);
        assert_eq!(Front::of(&read("dynamo_frontend_other 1\n")), None);
    }
}
