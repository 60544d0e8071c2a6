//! Warns of thresholds that nothing is known to judge by: they refuse nobody, which
//! their operator would find out too late.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use super::shared::Shared;

/// How long the workers have to tell their size, once one of them answers: several
/// readings of their pages.
const GRACE: Duration = Duration::from_secs(3);

/// How often it is looked whether one answers.
const LOOK: Duration = Duration::from_millis(200);

/// Warns once of each, then ends. Cancel safe.
pub(super) async fn warn_of_thresholds(shared: &Shared) {
    let monitor = &shared.monitor;
    while monitor.models().is_empty() {
        sleep(LOOK).await;
    }
    let interval = monitor.settings().scrape_interval.unwrap_or_default();
    sleep(GRACE.max(interval * 3)).await;
    for model in monitor.models() {
        for threshold in monitor.without_source(&model, &monitor.thresholds(&model)) {
            warn!(
                model,
                threshold = threshold.flag(),
                "no worker tells what this threshold is compared with, so it refuses nobody: \
                 see --kv-total-blocks and --max-num-batched-tokens, and GET /busy_threshold"
            );
        }
    }
}
