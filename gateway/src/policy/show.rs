//! The policy's metrics: its decisions, who is held, the state that it goes by,
//! and what clients got. The three axes are all there: the GPU, concurrency, and
//! quality of service.

use metrics::Recorder;
use tidegate_policy::class::ClassId;
use tidegate_policy::published::Reading;
use tidegate_policy::reason::Reason;
use tidegate_policy::shadow::{Counts, Mode};

use super::door::Door;
use super::layer::{Counter, Layer};
use crate::server::series::Series;

/// Names, and what they mean.
const HELP: [(&str, &str); 13] = [
    (
        "policy_decision_total",
        "Requests by class, by what the policy decided, and by reason",
    ),
    ("policy_held_count", "Requests that the policy holds"),
    (
        "policy_inside_count",
        "Requests that are inside the engine, as the policy counts them",
    ),
    (
        "policy_engine_request_limit",
        "Requests that the policy lets run, over all ranks",
    ),
    (
        "policy_utilisation_target",
        "Share of the engine request limit that the tuner uses, 0 to 1",
    ),
    (
        "policy_state_fresh",
        "1 while the engine's state is known; 0 means that the gate alone decides",
    ),
    (
        "policy_state_age_seconds",
        "Age of the engine's state, in seconds",
    ),
    (
        "policy_gpu_share",
        "Shares of the GPU in use, 0 to 1; what is not known is not shown",
    ),
    (
        "policy_drain_error_seconds",
        "How far predictions of the drain time were off lately, by predictor, in seconds",
    ),
    (
        "policy_goodput",
        "Answers per second that kept their class's promise",
    ),
    (
        "policy_attainment",
        "Share of answers that kept their class's promise, 0 to 1",
    ),
    (
        "policy_first_token_seconds",
        "Quantiles of the time from arrival to the first token, in seconds",
    ),
    ("policy_observes", "1 while decisions are only counted"),
];

/// Those of a policy that knows of no state.
const QUEUE: [&str; 8] = [
    "policy_decision_total",
    "policy_held_count",
    "policy_inside_count",
    "policy_drain_error_seconds",
    "policy_goodput",
    "policy_attainment",
    "policy_first_token_seconds",
    "policy_observes",
];

/// Of the time to the first token.
const QUANTILES: [&str; 3] = ["0.5", "0.99", "0.999"];

impl Layer {
    /// Sets every series as it is now.
    pub(crate) fn publish(&self, recorder: &impl Recorder, prefix: &str) {
        let show = Show {
            series: Series::new(recorder, prefix),
            returns: false,
        };
        for (name, help) in HELP {
            show.series.describe(name, help);
        }
        let now = self.now();
        self.with(|counter| {
            let reading = self
                .state
                .read(now, counter.desk.judge().settings().stale_after);
            show.state(&reading, now);
            show.concurrency(counter);
            show.classes(counter, now);
            show.gone(counter);
        });
    }
}

impl<D: Door> Layer<D> {
    /// The same of what is held for a model before workers whose state is their own
    /// affair.
    pub(crate) fn publish_queue(&self, recorder: &impl Recorder, prefix: &str, model: &str) {
        let show = Show {
            series: Series::new(recorder, prefix).with("model", model),
            returns: true,
        };
        for (name, help) in HELP.into_iter().filter(|(name, _)| QUEUE.contains(name)) {
            show.series.describe(name, help);
        }
        let now = self.now();
        self.with(|counter| {
            show.inside(counter);
            show.classes(counter, now);
            show.gone(counter);
        });
    }
}

struct Show<'a> {
    series: Series<'a>,
    /// Whether requests that were let in may come back.
    returns: bool,
}

impl Show<'_> {
    fn state(&self, reading: &Reading, now: std::time::Duration) {
        let fresh = reading.fresh();
        self.series.flag("policy_state_fresh", &[], fresh.is_some());
        let age = match reading {
            Reading::Fresh(state) => now.saturating_sub(state.at),
            Reading::Stale { age } => *age,
            Reading::Missing => now,
        };
        self.series
            .gauge("policy_state_age_seconds", &[], age.as_secs_f64());
        let device = fresh.map(|state| state.device).unwrap_or_default();
        let memory = fresh.and_then(|state| state.memory);
        for (axis, share) in [
            ("utilisation", device.utilisation),
            ("sm_utilisation", device.sm_utilisation),
            ("memory_bandwidth", device.memory_bandwidth),
            ("memory", memory.map(|memory| memory.share())),
        ] {
            // Once shown, what is not known any more is not a number.
            self.series.gauge(
                "policy_gpu_share",
                &[("of", axis)],
                share.unwrap_or(f64::NAN),
            );
        }
    }

    fn inside(&self, counter: &Counter<impl Door>) {
        let observes = counter.desk.mode() == Mode::Observe;
        self.series.flag("policy_observes", &[], observes);
        let inside = counter.desk.judge().inside();
        self.series.gauge("policy_inside_count", &[], inside as f64);
    }

    fn concurrency(&self, counter: &Counter<impl Door>) {
        let judge = counter.desk.judge();
        self.inside(counter);
        self.series
            .gauge("policy_utilisation_target", &[], judge.target());
        self.series
            .gauge("policy_engine_request_limit", &[], judge.limit().into());
    }

    fn classes(&self, counter: &mut Counter<impl Door>, now: std::time::Duration) {
        let classes = counter.desk.judge().settings().classes.all().iter();
        let names: Vec<_> = classes.map(|class| class.name.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            let class = [("class", name.as_str())];
            if let Some(counts) = counter.desk.decisions().get(at) {
                self.decisions(counts, name);
            }
            let held = counter.desk.held(ClassId(at));
            self.series.gauge("policy_held_count", &class, held as f64);
            let error = counter.desk.judge().drain(ClassId(at)).map(|d| d.error());
            let error = error.unwrap_or_default();
            for (predictor, ms) in [
                ("regression", error.regression_ms),
                ("average", error.average_ms),
            ] {
                let labels = [("class", name.as_str()), ("predictor", predictor)];
                self.series
                    .gauge("policy_drain_error_seconds", &labels, seconds(ms));
            }
            let Some(attained) = counter.desk.attained(now, ClassId(at)) else {
                continue;
            };
            self.series
                .gauge("policy_goodput", &class, attained.goodput);
            let share = attained.attainment.unwrap_or(f64::NAN);
            self.series.gauge("policy_attainment", &class, share);
            let quantiles = attained.first_token_ms.map_or([None; 3], |q| q.map(Some));
            for (quantile, ms) in QUANTILES.into_iter().zip(quantiles) {
                let labels = [("class", name.as_str()), ("quantile", quantile)];
                self.series
                    .gauge("policy_first_token_seconds", &labels, seconds(ms));
            }
        }
    }

    /// Classes that were taken out of the policy: their series stay, and say so.
    fn gone(&self, counter: &Counter<impl Door>) {
        for (name, counts) in counter.desk.decisions_of_gone() {
            self.decisions(counts, name);
            let class = [("class", name.as_str())];
            self.series.gauge("policy_held_count", &class, 0.0);
            self.series.gauge("policy_goodput", &class, 0.0);
            self.series.gauge("policy_attainment", &class, f64::NAN);
            for quantile in QUANTILES {
                let labels = [("class", name.as_str()), ("quantile", quantile)];
                self.series
                    .gauge("policy_first_token_seconds", &labels, f64::NAN);
            }
        }
    }

    fn decisions(&self, counts: &Counts, name: &str) {
        let show = |decision, reason, count| {
            let labels = [("class", name), ("decision", decision), ("reason", reason)];
            self.series.counter("policy_decision_total", &labels, count);
        };
        show("admitted", "", counts.admitted);
        show("gate_alone", "", counts.gate_alone);
        show("left", "", counts.left);
        if self.returns {
            show("returned", "", counts.returned);
        }
        for reason in Reason::ALL {
            show("held", reason.name(), counts.waited(reason));
            show("refused", reason.name(), counts.refused(reason));
        }
    }
}

fn seconds(ms: Option<f64>) -> f64 {
    ms.map_or(f64::NAN, |ms| ms / 1e3)
}
