//! What the gate decided about each request, in the log at debug level and on the
//! page. Costs nothing beside a look at the level, and one whether the page is open,
//! while nobody reads it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::{Lane, Overload};
use tracing::debug;

use crate::page::Decisions;
use crate::policy::Refused;
use crate::server::named::Named;

/// The request entered at once.
pub(super) fn admitted(page: &Decisions, named: &Named, lane: Lane) {
    page.note("admitted", None, || (place(lane), "room".to_owned()));
    debug!(id = named.id(), %lane, outcome = "admitted", reason = "room", "decided");
}

/// The request was refused: which limit stood in the way, its value, what was
/// there at that moment, and when to come back.
pub(super) fn refused(
    page: &Decisions,
    named: &Named,
    overload: &Overload,
    retry_after: Option<u64>,
) {
    let of = if overload.of_worker { "worker" } else { "rank" };
    page.note("refused", None, || {
        let (limit, value) = (overload.limit, overload.value);
        (place(overload.lane), format!("{limit} {value} of the {of}"))
    });
    debug!(
        id = named.id(),
        lane = %overload.lane,
        outcome = "refused",
        reason = %overload.limit,
        value = overload.value,
        limit_of = of,
        scope = %overload.scope,
        running = overload.counts.running,
        waiting = overload.counts.waiting,
        queued = overload.counts.queued,
        // Capacity comes back, so a later try can succeed.
        retryable = true,
        retry_after_seconds = retry_after,
        "decided"
    );
}

/// The policy refused the request, or held it until it was refused.
pub(super) fn judged(page: &Decisions, named: &Named, refused: &Refused, retry_after: Option<u64>) {
    let Refused { class, reason, .. } = refused;
    page.note("refused", None, || {
        (format!("class {class}"), reason.to_string())
    });
    debug!(
        id = named.id(),
        class,
        outcome = "refused",
        %reason,
        scope = "class",
        retryable = reason.may_pass(),
        retry_after_seconds = retry_after,
        "decided"
    );
}

/// A request that waits. Dropping it tells that its client left.
#[derive(Debug)]
pub(super) struct Queued {
    page: Arc<Decisions>,
    named: Named,
    since: Instant,
    /// Its lane, until something came of it.
    lane: Option<Lane>,
}

impl Queued {
    /// The request has just queued. Its position is counted in its lane, from 1, and
    /// approximate: others come and go meanwhile.
    pub(super) fn new(page: &Arc<Decisions>, named: &Named, lane: Lane, position: u64) -> Self {
        page.note("queued", None, || {
            (
                place(lane),
                format!("no room in the engine, position {position}"),
            )
        });
        debug!(
            id = named.id(),
            %lane,
            outcome = "queued",
            reason = "no room in the engine",
            position,
            "decided"
        );
        Self {
            page: Arc::clone(page),
            named: named.clone(),
            since: Instant::now(),
            lane: Some(lane),
        }
    }

    /// The policy holds the request, at this position among all that it holds.
    pub(super) fn held(page: &Arc<Decisions>, named: &Named, position: u64) -> Self {
        page.note("held", None, || {
            let why = format!("its class's turn has not come, position {position}");
            ("policy".to_owned(), why)
        });
        debug!(
            id = named.id(),
            outcome = "held",
            reason = "its class's turn has not come",
            position,
            "decided"
        );
        Self {
            page: Arc::clone(page),
            named: named.clone(),
            since: Instant::now(),
            lane: Some(Lane::Unspecified),
        }
    }

    /// Whose it is.
    pub(super) fn named(&self) -> &Named {
        &self.named
    }

    /// Its turn has come. Gives how long it waited.
    pub(super) fn admitted(&mut self, lane: Lane) -> Duration {
        self.lane = None;
        let waited = self.since.elapsed();
        let its_turn = || (place(lane), "its turn came".to_owned());
        self.page.note("admitted", Some(waited), its_turn);
        let id = self.named.id();
        debug!(id, %lane, outcome = "admitted", reason = "its turn came", ?waited, "decided");
        waited
    }

    /// It gives its place up for a reason of its own.
    pub(super) fn gave_up(&mut self, reason: &dyn std::fmt::Display) {
        self.ended(reason);
    }

    /// What became of it is told elsewhere.
    pub(super) fn over(&mut self) {
        self.lane = None;
    }

    fn ended(&mut self, reason: &dyn std::fmt::Display) {
        if let Some(lane) = self.lane.take() {
            let (id, waited) = (self.named.id(), self.since.elapsed());
            let left = || (place(lane), reason.to_string());
            self.page.note("cancelled", Some(waited), left);
            debug!(id, %lane, outcome = "cancelled", %reason, ?waited, "decided");
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.ended(&"the client left");
    }
}

/// A lane, for a reader.
fn place(lane: Lane) -> String {
    match lane {
        Lane::Rank(rank) => format!("rank {rank}"),
        Lane::Unspecified => "no rank".to_owned(),
    }
}
