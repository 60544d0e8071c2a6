//! What the page shows of a worker: what its `/metrics` says.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use crate::page::{Page, Reading};
use crate::scrape::exposition;

/// The page, until `end`.
pub(super) fn page(shared: &Arc<Shared>, end: CancellationToken) -> Page {
    let decisions = Arc::clone(&shared.decisions);
    let shared = Arc::clone(shared);
    let source = move || {
        let cluster = shared.cluster.as_ref();
        let cluster = cluster.map(|cluster| cluster.counts.as_ref());
        let text = shared.metrics.render(shared.policy.as_deref(), cluster);
        async move { Reading::of(&exposition::read(&text)) }.boxed()
    };
    Page::new(Box::new(source), decisions, end)
}
