//! One worker, watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::held::Held;
use super::load::{Busy, Load};
use super::sample::{Source, Totals};
use super::shared::Shared;
use super::snapshot::{MemberSnapshot, SourceSnapshot};
use super::state::Reading;
use super::threshold::Threshold;
use crate::scrape::page::PageUrl;

/// What is known of a worker when it is added.
#[derive(Clone, Debug)]
pub struct Joining {
    /// Its name: the label `worker_id`, and what its events say.
    pub id: u64,
    /// Its metrics page; `None` is not scraped.
    pub page: Option<PageUrl>,
    /// The label `worker_type`.
    pub worker_type: &'static str,
    /// Its ranks, if known; else its page tells, or it has one, 0.
    pub ranks: Option<Vec<u32>>,
    /// How large each of its ranks is, as far as known; its page tells the rest.
    pub totals: Totals,
    /// The models that it serves; [`Member::serves`] replaces them.
    pub models: BTreeSet<String>,
}

impl Joining {
    /// A worker of which only a name is known.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            page: None,
            worker_type: "aggregated",
            ranks: None,
            totals: Totals::default(),
            models: BTreeSet::new(),
        }
    }
}

/// A worker that the monitor watches. A cheap clone; reads take one short lock of
/// this worker's own. It outlives the worker's removal, so that a request in flight
/// can end, but is then shown nowhere.
#[derive(Clone, Debug)]
pub struct Member(pub(super) Arc<Shared>);

impl Member {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Says which models it serves now.
    pub fn serves(&self, models: impl IntoIterator<Item = String>) {
        *self.0.models() = models.into_iter().collect();
    }

    /// Which of its ranks are busy by the thresholds of `model`, and whether it is.
    #[must_use]
    pub fn busy(&self, model: &str) -> Busy {
        let thresholds = self.0.settings.table.of(model);
        if thresholds.is_empty() {
            return Busy::default();
        }
        let ttl = self.0.settings.load_ttl;
        self.0.state().busy(&thresholds, Instant::now(), ttl)
    }

    /// How many of its ranks are busy by this threshold of `model` alone.
    #[must_use]
    pub fn ranks_over(&self, threshold: Threshold, model: &str) -> usize {
        let alone = threshold.alone(self.0.settings.table.of(model));
        let ttl = self.0.settings.load_ttl;
        let busy = self.0.state().busy(&alone, Instant::now(), ttl);
        busy.ranks.len()
    }

    /// Its load now, by rank.
    #[must_use]
    pub fn load(&self) -> Load {
        let ttl = self.0.settings.load_ttl;
        self.0.state().load(Instant::now(), ttl)
    }

    /// Accounts for a request that is about to be sent to it, until the answer is
    /// dropped. `rank` is the one passed on with the request, if any; `prompt_bytes` is
    /// the size of the prompt as it stands in the request's body, for `model`.
    #[must_use]
    pub fn started(&self, rank: Option<u32>, model: &str, prompt_bytes: u64) -> Held {
        Held::new(Arc::clone(&self.0), rank, model, prompt_bytes)
    }

    /// The moment of which a load sample last said that it can take another request. A
    /// mark that a refusal set before it has no ground left.
    #[must_use]
    pub fn last_free(&self) -> Option<Instant> {
        self.0.state().free()
    }

    /// Takes in what `source` says of its load at the moment `at`. Ranks that it does
    /// not have are dropped and counted, and what is older than what is known is ignored.
    pub fn observe(&self, source: Source, reading: &Reading, at: Instant) {
        self.0.state().take(source, reading, at);
        self.tell_news();
    }

    /// Says that it may have room that it had not.
    pub fn tell_news(&self) {
        self.0.settings.news.notify_waiters();
    }

    /// It has these ranks, as it says itself; its page changes them no more. What was
    /// said of others is forgotten.
    pub fn declare(&self, ranks: &[u32]) {
        self.0.state().declare(ranks);
    }

    pub(super) fn has_source(&self, threshold: Threshold) -> bool {
        self.0.state().has_source(threshold)
    }

    pub(super) fn snapshot(&self, now: Instant) -> MemberSnapshot {
        let ttl = self.0.settings.load_ttl;
        let state = self.0.state();
        let source = |source| SourceSnapshot {
            source,
            age: state
                .heard(source)
                .map(|at| now.saturating_duration_since(at)),
        };
        MemberSnapshot {
            id: self.0.id,
            worker_type: self.0.worker_type,
            load: state.load(now, ttl),
            sources: Source::ALL.map(source),
            load_ttl: ttl,
            dropped: state.dropped,
            failed_scrapes: state.failed_scrapes,
        }
    }
}
