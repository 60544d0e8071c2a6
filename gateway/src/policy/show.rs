//! The policy's metrics: its decisions, who is held, the state that it goes by,
//! and what clients got. The three axes are all there: the GPU, concurrency, and
//! quality of service.

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use tidegate_policy::class::ClassId;
use tidegate_policy::published::Reading;
use tidegate_policy::reason::Reason;

use super::door::Door;
use super::layer::{Counter, Layer};

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

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
        "How far predictions of the drain time were off lately, in seconds",
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

impl Layer {
    /// Sets every series as it is now.
    pub(crate) fn publish(&self, recorder: &impl Recorder, prefix: &str) {
        let show = Show {
            recorder,
            prefix,
            model: None,
        };
        HELP.iter()
            .for_each(|(name, help)| show.describe(name, help));
        let now = self.now();
        self.with(|counter| {
            let reading = self
                .state
                .read(now, counter.desk.judge().settings().stale_after);
            show.state(&reading, now);
            show.concurrency(counter);
            show.classes(counter, now);
        });
    }
}

impl<D: Door> Layer<D> {
    /// The same of what is held for a model before workers whose state is their own
    /// affair.
    pub(crate) fn publish_queue(&self, recorder: &impl Recorder, prefix: &str, model: &str) {
        let model = Some(model);
        let show = Show {
            recorder,
            prefix,
            model,
        };
        let told = |name: &&str| QUEUE.contains(name);
        HELP.iter()
            .filter(|(name, _)| told(name))
            .for_each(|(name, help)| show.describe(name, help));
        let now = self.now();
        self.with(|counter| {
            show.inside(counter);
            show.classes(counter, now);
        });
    }
}

struct Show<'a, R> {
    recorder: &'a R,
    prefix: &'a str,
    /// The label `model`, if there is one.
    model: Option<&'a str>,
}

impl<R: Recorder> Show<'_, R> {
    fn state(&self, reading: &Reading, now: std::time::Duration) {
        let fresh = reading.fresh();
        self.gauge(
            "policy_state_fresh",
            &[],
            f64::from(u8::from(fresh.is_some())),
        );
        let age = match reading {
            Reading::Fresh(state) => now.saturating_sub(state.at),
            Reading::Stale { age } => *age,
            Reading::Missing => now,
        };
        self.gauge("policy_state_age_seconds", &[], age.as_secs_f64());
        let device = fresh.map(|state| state.device).unwrap_or_default();
        let memory = fresh.and_then(|state| state.memory);
        for (axis, share) in [
            ("utilisation", device.utilisation),
            ("sm_utilisation", device.sm_utilisation),
            ("memory_bandwidth", device.memory_bandwidth),
            ("memory", memory.map(|memory| memory.share())),
        ] {
            // Once shown, what is not known any more is not a number.
            self.gauge(
                "policy_gpu_share",
                &[("of", axis)],
                share.unwrap_or(f64::NAN),
            );
        }
    }

    fn describe(&self, name: &str, help: &'static str) {
        let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
        let (name, help) = (self.name(name), SharedString::const_str(help));
        match name.as_str().ends_with("_total") {
            true => self.recorder.describe_counter(name, unit, help),
            false => self.recorder.describe_gauge(name, unit, help),
        }
    }

    fn inside(&self, counter: &Counter<impl Door>) {
        let observes = counter.desk.mode() == tidegate_policy::shadow::Mode::Observe;
        self.gauge("policy_observes", &[], f64::from(u8::from(observes)));
        let inside = counter.desk.judge().inside();
        self.gauge("policy_inside_count", &[], inside as f64);
    }

    fn concurrency(&self, counter: &Counter<impl Door>) {
        let judge = counter.desk.judge();
        self.inside(counter);
        self.gauge("policy_utilisation_target", &[], judge.target());
        self.gauge("policy_engine_request_limit", &[], judge.limit().into());
    }

    fn classes(&self, counter: &mut Counter<impl Door>, now: std::time::Duration) {
        let classes = counter.desk.judge().settings().classes.all().iter();
        let names: Vec<_> = classes.map(|class| class.name.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            let class = [("class", name.as_str())];
            self.decisions(counter, at, name);
            let held = counter.desk.held(ClassId(at));
            self.gauge("policy_held_count", &class, held as f64);
            let error = counter.desk.judge().drain(ClassId(at)).map(|d| d.error());
            let error = error.unwrap_or_default();
            for (model, ms) in [
                ("regression", error.regression_ms),
                ("average", error.average_ms),
            ] {
                let labels = [("class", name.as_str()), ("model", model)];
                self.gauge("policy_drain_error_seconds", &labels, seconds(ms));
            }
            let Some(attained) = counter.desk.attained(now, ClassId(at)) else {
                continue;
            };
            self.gauge("policy_goodput", &class, attained.goodput);
            let share = attained.attainment.unwrap_or(f64::NAN);
            self.gauge("policy_attainment", &class, share);
            let quantiles = attained.first_token_ms.map_or([None; 3], |q| q.map(Some));
            for (quantile, ms) in ["0.5", "0.99", "0.999"].into_iter().zip(quantiles) {
                let labels = [("class", name.as_str()), ("quantile", quantile)];
                self.gauge("policy_first_token_seconds", &labels, seconds(ms));
            }
        }
    }

    fn decisions(&self, counter: &Counter<impl Door>, class: usize, name: &str) {
        let Some(counts) = counter.desk.decisions().get(class) else {
            return;
        };
        let show = |decision, reason, count| {
            let labels = [("class", name), ("decision", decision), ("reason", reason)];
            self.counter("policy_decision_total", &labels, count);
        };
        show("admitted", "", counts.admitted);
        show("gate_alone", "", counts.gate_alone);
        show("left", "", counts.left);
        if self.model.is_some() {
            show("returned", "", counts.returned);
        }
        for reason in Reason::ALL {
            show("held", reason.name(), counts.waited(reason));
            show("refused", reason.name(), counts.refused(reason));
        }
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let key = self.key(name, labels);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &str)], value: u64) {
        let key = self.key(name, labels);
        self.recorder
            .register_counter(&key, &METADATA)
            .absolute(value);
    }

    fn key(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let model = self.model.map(|model| ("model", model));
        let labels = labels
            .iter()
            .chain(&model)
            .map(|(name, value)| Label::new(*name, (*value).to_owned()));
        Key::from_parts(self.name(name), labels.collect::<Vec<_>>())
    }

    fn name(&self, name: &str) -> KeyName {
        KeyName::from(format!("{}{name}", self.prefix))
    }
}

fn seconds(ms: Option<f64>) -> f64 {
    ms.map_or(f64::NAN, |ms| ms / 1e3)
}
