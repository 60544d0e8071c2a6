//! The monitor: all workers, watched, and the thresholds that they are judged by.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::member::{Joining, Member};
use super::ratio::Ratios;
use super::sample::Totals;
use super::scrape;
use super::shared::{Common, Shared};
use super::snapshot::{self, MemberSnapshot};
use super::state::State;
use super::table::Table;
use super::threshold::{Threshold, Thresholds};
use crate::scrape::page::Fetch;

/// What a monitor is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorSettings {
    /// The thresholds of models that have none of their own.
    pub thresholds: Thresholds,
    /// The age at which what a source says counts no longer.
    pub load_ttl: Duration,
    /// The time from one reading of a metrics page to the next; `None` reads none.
    pub scrape_interval: Option<Duration>,
    /// Tokens in one KV block, where the worker does not tell.
    pub block_size: u32,
    /// Whether the own accounting counts the blocks of output tokens.
    pub track_output_blocks: bool,
    /// How large a rank is, where the worker does not tell.
    pub totals: Totals,
    /// Whether `/busy_threshold` is there.
    pub admin_api: bool,
}

impl Default for MonitorSettings {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            load_ttl: Duration::from_secs(10),
            scrape_interval: Some(Duration::from_secs(1)),
            block_size: 16,
            track_output_blocks: false,
            totals: Totals::default(),
            admin_api: true,
        }
    }
}

/// Watches workers. A cheap clone; what it runs in the background ends with the
/// last one.
#[derive(Clone, Debug)]
pub struct Monitor(Arc<Inner>);

/// A monitor, as long as someone else has it.
#[derive(Debug)]
pub(super) struct WeakMonitor(Weak<Inner>);

impl WeakMonitor {
    pub fn upgrade(&self) -> Option<Monitor> {
        self.0.upgrade().map(Monitor)
    }
}

#[derive(Debug)]
struct Inner {
    settings: MonitorSettings,
    common: Arc<Common>,
    members: Mutex<BTreeMap<u64, Entry>>,
}

/// A member and what runs for it.
#[derive(Debug)]
struct Entry {
    member: Member,
    _scraping: Option<AbortOnDropHandle<()>>,
}

impl Monitor {
    /// Watches nobody yet.
    #[must_use]
    pub fn new(settings: MonitorSettings) -> Self {
        let common = Common {
            load_ttl: settings.load_ttl,
            block_size: settings.block_size,
            track_output_blocks: settings.track_output_blocks,
            table: Table::new(settings.thresholds),
            ratios: Ratios::default(),
            news: Notify::new(),
        };
        Self(Arc::new(Inner {
            settings,
            common: Arc::new(common),
            members: Mutex::default(),
        }))
    }

    /// What it is set to.
    #[must_use]
    pub fn settings(&self) -> &MonitorSettings {
        &self.0.settings
    }

    /// Watches another worker from now on; one of the same name goes first. If it has
    /// a metrics page, it is read in the background, which needs a tokio runtime.
    ///
    /// # Errors
    /// For a page behind `https`, when the system's trusted certificates cannot be read.
    ///
    /// # Panics
    /// Outside a tokio runtime, if there is a page to read.
    pub fn add(&self, joining: Joining) -> io::Result<Member> {
        let settings = &self.0.settings;
        let totals = joining.totals.or(settings.totals);
        let member = Member(Arc::new(Shared {
            id: joining.id,
            worker_type: joining.worker_type,
            settings: Arc::clone(&self.0.common),
            state: Mutex::new(State::new(joining.ranks.as_deref(), totals)),
            models: Mutex::new(joining.models),
        }));
        let page = joining.page.zip(settings.scrape_interval);
        let scraping = match page {
            Some((url, interval)) => {
                let run = scrape::run(member.clone(), Fetch::new(url)?, interval);
                Some(AbortOnDropHandle::new(tokio::spawn(run)))
            }
            None => None,
        };
        let entry = Entry {
            member: member.clone(),
            _scraping: scraping,
        };
        self.entries().insert(joining.id, entry);
        Ok(member)
    }

    /// Watches a worker no longer; says whether there was one of that name. Its series
    /// go, and its page is read no more.
    pub fn remove(&self, id: u64) -> bool {
        self.entries().remove(&id).is_some()
    }

    /// A worker by its name.
    #[must_use]
    pub fn member(&self, id: u64) -> Option<Member> {
        self.entries().get(&id).map(|entry| entry.member.clone())
    }

    /// All workers, by their names.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let entries = self.entries();
        entries.values().map(|entry| entry.member.clone()).collect()
    }

    /// The models that workers serve.
    #[must_use]
    pub fn models(&self) -> BTreeSet<String> {
        let members = self.members();
        let models = members.iter().map(|member| member.0.models().clone());
        models.flatten().collect()
    }

    /// The thresholds of a model.
    #[must_use]
    pub fn thresholds(&self, model: &str) -> Thresholds {
        self.0.common.table.of(model)
    }

    /// Those of `thresholds` that nothing is known to judge `model` by: no worker that
    /// serves it has told its size.
    #[must_use]
    pub fn without_source(&self, model: &str, thresholds: &Thresholds) -> Vec<Threshold> {
        let members = self.members();
        let serving: Vec<&Member> = members
            .iter()
            .filter(|member| member.0.models().contains(model))
            .collect();
        let missing = |threshold: &Threshold| {
            threshold.is_set(thresholds)
                && !serving.iter().any(|member| member.has_source(*threshold))
        };
        Threshold::ALL.into_iter().filter(missing).collect()
    }

    /// Everything that metrics show of the workers.
    #[must_use]
    pub fn snapshot(&self) -> Vec<MemberSnapshot> {
        let now = Instant::now();
        let members = self.members();
        members.iter().map(|member| member.snapshot(now)).collect()
    }

    /// The same in Prometheus' text format, with its `HELP` and `TYPE` lines. No worker
    /// that was removed has a series there.
    #[must_use]
    pub fn render(&self) -> String {
        snapshot::render(&self.snapshot())
    }

    /// Fires when something is known after this call that may make room at a worker.
    /// That a load is too old to count says nobody: ask again now and then.
    pub fn news(&self) -> Notified<'_> {
        self.0.common.news.notified()
    }

    /// Says that there may be room somewhere that there was not.
    pub(super) fn tell_news(&self) {
        self.0.common.news.notify_waiters();
    }

    pub(super) fn downgrade(&self) -> WeakMonitor {
        WeakMonitor(Arc::downgrade(&self.0))
    }

    pub(super) fn table(&self) -> &Table {
        &self.0.common.table
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.0
            .members
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
