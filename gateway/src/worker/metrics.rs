//! The worker's `/metrics`: one recorder for one gate, not a global one, so that
//! several workers in a process stay apart.

use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tidegate::{Gate, Lane};

use super::error::ConfigError;
use super::legacy;
use super::prefix::parse_prefix;
use crate::cluster::Counts;
use crate::policy::Layer;
use crate::server::series::Series;

/// Upper bounds of the queue wait's buckets, in seconds: 12 from 1 ms to 60 s,
/// each 2.7 times the one before.
const WAIT_BUCKETS: [f64; 12] = [
    0.001, 0.0027, 0.0074, 0.02, 0.055, 0.15, 0.4, 1.1, 3.0, 8.2, 22.0, 60.0,
];

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Whether the engine's size is known, and whether the gate runs on a limit that
/// protects nothing.
const REPORTED: &str = "engine_reported";
const FALLBACK: &str = "engine_request_limit_is_fallback";

/// Everything that `/metrics` shows.
#[derive(Debug)]
pub struct Metrics {
    gate: Gate,
    prefix: String,
    /// Whether the older names are shown too.
    legacy: bool,
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    /// Metrics of `gate`, each name after `prefix`, and each series labelled
    /// with `worker_type` if there is one; with `legacy`, under the older names
    /// as well. `limited` is whether somebody has set the engine request limit.
    ///
    /// # Errors
    /// A prefix that cannot begin a name.
    pub(super) fn new(
        gate: Gate,
        prefix: &str,
        worker_type: Option<&str>,
        legacy: bool,
        limited: bool,
    ) -> Result<Self, ConfigError> {
        let prefix = parse_prefix(prefix)
            .map_err(|said| ConfigError::Setting(format!("metrics prefix {prefix:?}: {said}")))?;
        let mut builder = PrometheusBuilder::new()
            .set_buckets(&WAIT_BUCKETS)
            .map_err(|error| ConfigError::Metrics(error.to_string()))?;
        if let Some(worker_type) = worker_type {
            builder = builder.add_global_label("worker_type", worker_type);
        }
        let recorder = builder.build_recorder();
        let metrics = Self {
            gate,
            prefix,
            legacy,
            handle: recorder.handle(),
            recorder,
        };
        metrics.recorder.describe_histogram(
            metrics.name("queue_wait_seconds"),
            Some(Unit::Seconds),
            SharedString::const_str("Time from queueing to admission, in seconds"),
        );
        let series = metrics.series();
        series.describe(
            REPORTED,
            "1 once the engine's size is known, by flag or report",
        );
        series.describe(
            FALLBACK,
            "1 while nobody has set the engine request limit and the engine's size is not known: the fallback protects nothing",
        );
        series.flag(REPORTED, &[], false);
        series.flag(FALLBACK, &[], !limited);
        Ok(metrics)
    }

    /// The engine's size is known from now on.
    pub(super) fn engine_reported(&self) {
        self.series().flag(REPORTED, &[], true);
        self.series().flag(FALLBACK, &[], false);
    }

    fn series(&self) -> Series<'_> {
        Series::new(&self.recorder, &self.prefix)
    }

    /// Counts the wait of a request that was queued and is now admitted.
    pub(super) fn waited(&self, lane: Lane, time: Duration) {
        self.waits(lane).record(time.as_secs_f64());
    }

    fn waits(&self, lane: Lane) -> metrics::Histogram {
        let label = Label::new("dp_rank", lane.to_string());
        let key = Key::from_parts(self.name("queue_wait_seconds"), vec![label]);
        self.recorder.register_histogram(&key, &METADATA)
    }

    /// Everything as it is now, in Prometheus' text format.
    pub(super) fn render(&self, policy: Option<&Layer>, cluster: Option<&Counts>) -> String {
        self.gate.publish(&self.recorder, &self.prefix);
        if let Some(policy) = policy {
            policy.publish(&self.recorder, &self.prefix);
        }
        if let Some(cluster) = cluster {
            cluster.publish(&self.recorder, &self.prefix);
        }
        let seen = self.gate.snapshot();
        for lane in &seen.lanes {
            // A series that exists from the start, at zero.
            drop(self.waits(lane.lane));
        }
        if self.legacy {
            legacy::publish(&self.recorder, &seen);
        }
        self.handle.render()
    }

    /// Folds what was recorded into the buckets. Without this, waits would pile
    /// up while nobody reads `/metrics`.
    pub(super) fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    fn name(&self, suffix: &str) -> KeyName {
        KeyName::from(format!("{}{suffix}", self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_there_from_the_start_and_counted_by_rank() {
        let gate = Gate::builder().build().unwrap();
        gate.report_engine(tidegate::EngineReport {
            ranks: vec![4],
            max_num_seqs: Some(2),
        })
        .unwrap();
        let metrics = Metrics::new(gate, "p_", Some("decode"), false, false).unwrap();
        let text = metrics.render(None, None);
        let count = "p_queue_wait_seconds_count{worker_type=\"decode\",dp_rank=\"4\"}";
        assert!(text.contains(&format!("{count} 0\n")), "{text}");
        assert!(
            text.contains("p_engine_reported{worker_type=\"decode\"} 0\n"),
            "{text}"
        );
        let fallback = "p_engine_request_limit_is_fallback{worker_type=\"decode\"} ";
        assert!(text.contains(&format!("{fallback}1\n")), "{text}");
        metrics.engine_reported();
        let text = metrics.render(None, None);
        assert!(text.contains(&format!("{fallback}0\n")), "{text}");

        metrics.waited(Lane::Rank(4), Duration::from_millis(10));
        metrics.upkeep();
        let text = metrics.render(None, None);
        assert!(text.contains(&format!("{count} 1\n")), "{text}");
        assert_eq!(
            text.matches("_bucket{worker_type=\"decode\",dp_rank=\"4\"")
                .count(),
            13
        );
        assert!(
            text.contains("p_engine_request_limit{worker_type=\"decode\"} 2\n"),
            "{text}"
        );
    }

    /// The same names again as another kind, and values that nobody measures.
    #[test]
    fn faults_in_metrics_touch_neither_the_gate_nor_the_other_metrics() {
        let settings = tidegate::Settings {
            engine_request_limit: Some(1),
            ..Default::default()
        };
        let gate = Gate::builder().settings(settings).build().unwrap();
        let metrics = Metrics::new(gate.clone(), "p_", None, true, true).unwrap();
        for name in [
            "p_engine_request_count",
            "p_queue_wait_seconds",
            "dynamo_engine_request",
        ] {
            let key = Key::from_name(name);
            metrics
                .recorder
                .register_counter(&key, &METADATA)
                .increment(u64::MAX);
            metrics
                .recorder
                .register_gauge(&key, &METADATA)
                .set(f64::NAN);
            metrics
                .recorder
                .register_histogram(&key, &METADATA)
                .record(f64::NEG_INFINITY);
        }
        metrics.waited(Lane::Rank(77), Duration::MAX);
        metrics.waited(Lane::Unspecified, Duration::MAX);
        metrics.upkeep();
        let permit = gate.try_admit(None).unwrap();
        let text = metrics.render(None, None);
        let line = "p_engine_request_count{dp_rank=\"unspecified\"} 1\n";
        assert!(text.contains(line), "{text}");
        assert!(gate.try_admit(None).is_err());
        drop(permit);
        drop(gate.try_admit(None).unwrap());
        let text = metrics.render(None, None);
        assert!(
            text.contains("p_request_receive_total{dp_rank=\"unspecified\"} 3\n"),
            "{text}"
        );
    }
}
