//! The names that older dashboards know, each for the whole worker.

use metrics::Recorder;
use tidegate::{LaneSnapshot, Snapshot};

use crate::server::series::Series;

/// Sets the older names in `recorder`, as `seen` has them. They never had a
/// label, and no prefix but this.
pub(super) fn publish(recorder: &dyn Recorder, seen: &Snapshot) {
    let series = Series::new(recorder, "dynamo_");
    let running = "engine_request";
    series.describe(running, "Requests admitted and not finished (older name)");
    series.gauge(running, &[], seen.worker.running as f64);
    let queued = "request_queue";
    series.describe(queued, "Requests that wait in the gate (older name)");
    series.gauge(queued, &[], seen.worker.queued as f64);
    let refused = "rejection_request_total";
    series.describe(refused, "Requests refused (older name)");
    series.counter(refused, &[], seen.total(LaneSnapshot::rejected));
}
