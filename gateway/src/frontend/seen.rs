//! What the page shows of a frontend: what its `/metrics` says, and those of its
//! workers that have a gate.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::member::Member;
use super::own;
use super::shared::Shared;
use crate::page::gate::Gate;
use crate::page::{Page, Reading};
use crate::scrape::exposition;

/// How long a worker may take to show its metrics: less than from one sample to
/// the next.
const TIME: Duration = Duration::from_millis(700);

/// Workers whose metrics are read while somebody looks. The others are shown as the
/// frontend knows them.
const MOST_GATES: usize = 64;

/// The page, until `end`.
pub(super) fn page(shared: &Arc<Shared>, end: CancellationToken) -> Page {
    let decisions = Arc::clone(&shared.decisions);
    let shared = Arc::clone(shared);
    let source = move || {
        let shared = Arc::clone(&shared);
        async move { reading(&shared).await }.boxed()
    };
    Page::new(Box::new(source), decisions, end)
}

async fn reading(shared: &Shared) -> Reading {
    let members = shared.members.all();
    let gates = members.iter().filter(|member| member.is_well());
    let gates = join_all(gates.take(MOST_GATES).map(|member| gate(member))).await;
    let own = Reading::of(&exposition::read(&own::page(shared)));
    Reading {
        gates: gates.into_iter().flatten().collect(),
        front: own.front,
    }
}

/// A worker's gate, if it has one and shows it.
async fn gate(member: &Member) -> Option<Gate> {
    let (status, page) = member.http.page("/metrics", "*/*", TIME).await.ok()?;
    let page = status
        .is_success()
        .then(|| String::from_utf8_lossy(&page))?;
    Gate::of(&exposition::read(&page), &member.id.to_string())
}
