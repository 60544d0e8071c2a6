//! The names that older dashboards know, each for the whole worker.

use metrics::{Key, KeyName, Metadata, Recorder, SharedString};
use tidegate::{LaneSnapshot, Snapshot};

/// Sets the older names in `recorder`, as `seen` has them. They never had a
/// label, and no prefix but this.
pub(super) fn publish(recorder: &dyn Recorder, metadata: &Metadata<'_>, seen: &Snapshot) {
    let gauges = [
        (
            "dynamo_engine_request",
            "Requests admitted and not finished (older name)",
            seen.worker.running,
        ),
        (
            "dynamo_request_queue",
            "Requests that wait in the gate (older name)",
            seen.worker.queued,
        ),
    ];
    for (name, meaning, value) in gauges {
        recorder.describe_gauge(
            KeyName::from_const_str(name),
            None,
            SharedString::const_str(meaning),
        );
        let key = Key::from_static_name(name);
        recorder.register_gauge(&key, metadata).set(value as f64);
    }
    const REFUSED: &str = "dynamo_rejection_request_total";
    recorder.describe_counter(
        KeyName::from_const_str(REFUSED),
        None,
        SharedString::const_str("Requests refused (older name)"),
    );
    recorder
        .register_counter(&Key::from_static_name(REFUSED), metadata)
        .absolute(seen.total(LaneSnapshot::rejected));
}
