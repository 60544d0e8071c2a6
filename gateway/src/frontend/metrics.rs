//! `/metrics` of the frontend: what clients got, by model, and what became of each
//! worker. Loads are the monitor's to tell.
//!
//! Workers' series are made anew for each page, so that they go with their worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio::time::Instant;

use super::eligible::Standing;
use super::hops::Ended;
use super::member::Member;
use super::record::Outcome;
use crate::cluster::Counts;
use crate::server::series::Series;

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What every series begins with.
pub(super) const PREFIX: &str = "dynamo_frontend_";

const REJECTIONS: &str = "dynamo_frontend_model_rejection_total";
const REQUESTS: &str = "dynamo_frontend_requests_total";
const DURATION: &str = "dynamo_frontend_request_duration_seconds";
const FIRST_TOKEN: &str = "dynamo_frontend_time_to_first_token_seconds";
const IN_FLIGHT: &str = "dynamo_frontend_inflight_requests";
const WAIT: &str = "dynamo_frontend_policy_wait_seconds";

/// A worker's, behind the prefix.
const HEALTHY: &str = "worker_healthy";
const STATE: &str = "worker_state";
const OVER: &str = "worker_ranks_over_threshold";
const HOPS: &str = "worker_requests_total";

/// Upper bounds of the latencies' buckets, in seconds: from 1 ms to 10 min.
const BUCKETS: [f64; 14] = [
    0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0,
];

/// What is counted about requests.
#[derive(Debug)]
pub(super) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// Requests of all models together, by outcome.
    totals: [AtomicU64; Outcome::ALL.len()],
}

/// How a request is labelled. `model` is a name that a worker serves, or `unknown`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) model: SharedString,
    pub(super) endpoint: &'static str,
}

impl Metrics {
    /// # Errors
    /// The library does not take the buckets, which are fixed.
    pub(super) fn new() -> Result<Self, String> {
        let builder = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)
            .map_err(|error| error.to_string())?;
        let recorder = builder.build_recorder();
        let describe = |name: &'static str, text: &'static str| {
            let (name, text) = (KeyName::from_const_str(name), SharedString::const_str(text));
            recorder.describe_counter(name, None, text);
        };
        describe(
            REJECTIONS,
            "Requests refused because every worker was overloaded",
        );
        describe(REQUESTS, "Requests that ended, by how");
        for (name, text) in [
            (
                DURATION,
                "Time from a request's head to the end of its answer, in seconds",
            ),
            (
                FIRST_TOKEN,
                "Time from a request's head to its first token, in seconds",
            ),
            (
                WAIT,
                "Time from a request's arrival at the policy until it let it in, in seconds",
            ),
        ] {
            recorder.describe_histogram(
                KeyName::from_const_str(name),
                Some(Unit::Seconds),
                SharedString::const_str(text),
            );
        }
        recorder.describe_gauge(
            KeyName::from_const_str(IN_FLIGHT),
            None,
            SharedString::const_str("Requests whose answer has not ended"),
        );
        Ok(Self {
            handle: recorder.handle(),
            recorder,
            totals: Default::default(),
        })
    }

    /// A request has begun, or ended.
    pub(super) fn in_flight(&self, begun: bool) {
        let gauge = self
            .recorder
            .register_gauge(&Key::from_static_name(IN_FLIGHT), &METADATA);
        if begun {
            gauge.increment(1.0);
        } else {
            gauge.decrement(1.0);
        }
    }

    /// Makes the series of a model that is served, at 0.
    pub(super) fn serves(&self, labels: &Labels) {
        drop(self.rejections(labels));
    }

    /// Counts a request that has ended.
    pub(super) fn ended(
        &self,
        labels: &Labels,
        outcome: Outcome,
        first_token: Option<Duration>,
        duration: Duration,
    ) {
        let outcome_label = Label::from_static_parts("outcome", outcome.label());
        let model = Label::new("model", labels.model.clone());
        let endpoint = Label::from_static_parts("endpoint", labels.endpoint);
        let key = Key::from_parts(
            KeyName::from_const_str(REQUESTS),
            vec![model.clone(), endpoint, outcome_label.clone()],
        );
        self.recorder.register_counter(&key, &METADATA).increment(1);
        // Relaxed: a statistic, nothing is read through it.
        self.totals[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if outcome == Outcome::Rejected {
            self.rejections(labels).increment(1);
        }
        let by = vec![model.clone(), outcome_label];
        self.observe(DURATION, by, duration);
        if let Some(first_token) = first_token {
            self.observe(FIRST_TOKEN, vec![model], first_token);
        }
    }

    /// A request waited so long for the policy to let it in.
    pub(super) fn waited(&self, labels: &Labels, class: String, time: Duration) {
        let model = Label::new("model", labels.model.clone());
        self.observe(WAIT, vec![model, Label::new("class", class)], time);
    }

    /// Where a policy's series go.
    pub(super) fn recorder(&self) -> &PrometheusRecorder {
        &self.recorder
    }

    /// Requests of any model that ended so.
    pub(super) fn total(&self, outcome: Outcome) -> u64 {
        self.totals[outcome as usize].load(Ordering::Relaxed)
    }

    fn rejections(&self, labels: &Labels) -> metrics::Counter {
        let labels = vec![
            Label::new("model", labels.model.clone()),
            Label::from_static_parts("endpoint", labels.endpoint),
        ];
        let key = Key::from_parts(KeyName::from_const_str(REJECTIONS), labels);
        self.recorder.register_counter(&key, &METADATA)
    }

    fn observe(&self, name: &'static str, labels: Vec<Label>, time: Duration) {
        let key = Key::from_parts(KeyName::from_const_str(name), labels);
        self.recorder
            .register_histogram(&key, &METADATA)
            .record(time.as_secs_f64());
    }

    /// Everything as it is now, in Prometheus' text format.
    pub(super) fn render<'a>(
        &self,
        members: impl Iterator<Item = &'a Member>,
        cluster: Option<&Counts>,
    ) -> String {
        self.handle.render() + &made_anew(members, cluster)
    }

    /// Folds what was recorded into the buckets.
    pub(super) fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// The workers' own series, and those of NATS.
fn made_anew<'a>(members: impl Iterator<Item = &'a Member>, cluster: Option<&Counts>) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    if let Some(cluster) = cluster {
        cluster.publish(&recorder, PREFIX);
    }
    let series = Series::new(&recorder, PREFIX);
    series.describe(HEALTHY, "1 while the worker answers and gets requests");
    series.describe(
        STATE,
        "1 for what the worker is now: free, busy by a threshold, marked by a refusal of a moment ago, or unwell",
    );
    series.describe(OVER, "Ranks of the worker that are over this threshold");
    series.describe(HOPS, "Requests sent to the worker, by how that ended");
    for member in members {
        let (id, url) = (member.id.to_string(), member.url().to_string());
        let id = ("worker_id", id.as_str());
        series.flag(HEALTHY, &[id, ("url", &url)], member.is_well());
        let now = member.standing(Instant::now());
        for standing in Standing::SHOWN {
            let state = ("state", standing.label());
            series.flag(STATE, &[id, state], standing == now);
        }
        for (threshold, over) in member.ranks_over() {
            let threshold = ("threshold", threshold.name());
            series.gauge(OVER, &[id, threshold], over as f64);
        }
        for ended in Ended::ALL {
            let result = ("result", ended.label());
            series.counter(HOPS, &[id, result], member.hops.of(ended));
        }
    }
    recorder.handle().render()
}
