//! The gate's counts through the [`metrics`] facade.

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use crate::handle::Gate;
use crate::snapshot::LaneSnapshot;

/// The prefix that dashboards expect.
pub const PREFIX: &str = "dynamo_backend_admission_";

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// A gauge of each lane: name, meaning, value.
const GAUGES: [(&str, &str, Field); 3] = [
    (
        "engine_request_count",
        "Requests admitted and not finished",
        |l| l.running,
    ),
    (
        "engine_request_waiting_count",
        "Admitted requests whose first token has not come",
        |l| l.waiting,
    ),
    (
        "request_queue_count",
        "Requests that wait in the gate",
        |l| l.queued,
    ),
];

/// A counter of each lane: name, meaning, further label, value.
const COUNTERS: [(&str, &str, Option<Further>, Field); 6] = [
    ("request_receive_total", "Requests on entry", None, |l| {
        l.received
    }),
    (
        "request_admit_total",
        ADMITTED,
        Some(("source", "direct")),
        |l| l.admitted_direct,
    ),
    (
        "request_admit_total",
        ADMITTED,
        Some(("source", "queue")),
        |l| l.admitted_queue,
    ),
    ("rejection_total", REJECTED, Some(("scope", "rank")), |l| {
        l.rejected_rank
    }),
    (
        "rejection_total",
        REJECTED,
        Some(("scope", "worker")),
        |l| l.rejected_worker,
    ),
    (
        "cancellation_total",
        "Requests that left before admission",
        None,
        |l| l.cancelled,
    ),
];

const ADMITTED: &str = "Requests handed to the engine";
const REJECTED: &str = "Requests refused";

type Field = fn(&LaneSnapshot) -> u64;
type Further = (&'static str, &'static str);

impl Gate {
    /// Sets every gauge and counter of this gate in `recorder`, as they are now:
    /// call it when metrics are read. Every series is there from the first call
    /// on, labelled only by lanes that exist.
    ///
    /// `prefix` goes before each name; dashboards expect [`PREFIX`].
    pub fn publish(&self, recorder: &dyn Recorder, prefix: &str) {
        let name = |suffix: &str| format!("{prefix}{suffix}");
        let snapshot = self.snapshot();
        let limits = snapshot.limits;
        for (suffix, value) in [
            ("engine_request_limit", limits.engine_request_limit),
            (
                "engine_request_waiting_limit",
                limits.engine_request_waiting_limit,
            ),
            ("request_queue_limit", limits.request_queue_limit),
        ] {
            let key = Key::from_name(name(suffix));
            describe_gauge(recorder, name(suffix), "The limit in force, per rank");
            recorder
                .register_gauge(&key, &METADATA)
                .set(f64::from(value));
        }
        for (suffix, meaning, value) in GAUGES {
            describe_gauge(recorder, name(suffix), meaning);
            for lane in &snapshot.lanes {
                let key = Key::from_parts(name(suffix), labels(lane, None));
                recorder
                    .register_gauge(&key, &METADATA)
                    .set(value(lane) as f64);
            }
        }
        for (suffix, meaning, label, value) in COUNTERS {
            let described = KeyName::from(name(suffix));
            recorder.describe_counter(
                described,
                Some(Unit::Count),
                SharedString::const_str(meaning),
            );
            for lane in &snapshot.lanes {
                let key = Key::from_parts(name(suffix), labels(lane, label));
                recorder
                    .register_counter(&key, &METADATA)
                    .absolute(value(lane));
            }
        }
    }
}

fn describe_gauge(recorder: &dyn Recorder, name: String, meaning: &'static str) {
    recorder.describe_gauge(
        KeyName::from(name),
        Some(Unit::Count),
        SharedString::const_str(meaning),
    );
}

fn labels(lane: &LaneSnapshot, further: Option<Further>) -> Vec<Label> {
    let mut labels = vec![Label::new("dp_rank", lane.lane.to_string())];
    labels.extend(further.map(|(key, value)| Label::from_static_parts(key, value)));
    labels
}
