//! All workers of a frontend.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use super::check::{self, Pace};
use super::eligible::{Serving, serving};
use super::member::Member;
use super::models::Served;
use crate::monitor::{Joining, Monitor};
use crate::proxy::engine::{Engine, EngineUrl};
use crate::scrape::page::PageUrl;

/// The workers, in order of their ids. Read without waiting, changed seldom.
#[derive(Debug)]
pub(super) struct Members {
    all: ArcSwap<Vec<Arc<Member>>>,
    monitor: Monitor,
    pace: Pace,
    mark_time: Duration,
    next_id: AtomicU64,
    /// What checks them; a worker's check ends with its entry.
    checks: Mutex<Vec<(u64, AbortOnDropHandle<()>)>>,
}

impl Members {
    pub(super) fn new(monitor: Monitor, pace: Pace, mark_time: Duration) -> Self {
        Self {
            all: ArcSwap::default(),
            monitor,
            pace,
            mark_time,
            next_id: AtomicU64::new(0),
            checks: Mutex::default(),
        }
    }

    /// All of them, at this moment.
    pub(super) fn all(&self) -> Arc<Vec<Arc<Member>>> {
        self.all.load_full()
    }

    /// Adds a worker, which gets requests once it has answered a check.
    ///
    /// # Errors
    /// For `https`, when the system's trusted certificates cannot be read.
    pub(super) fn add(&self, url: EngineUrl) -> io::Result<u64> {
        self.join(url, None)
    }

    /// The same, of a worker that says what it does.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(super) fn join(&self, url: EngineUrl, worker_type: Option<&str>) -> io::Result<u64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let watched = self.monitor.add(Joining {
            page: Some(PageUrl::of(url.clone(), "/metrics")),
            worker_type: known_type(worker_type),
            ..Joining::new(id)
        })?;
        let member = Arc::new(Member::new(id, Engine::new(url)?, watched, self.mark_time));
        info!(worker = id, url = %member.url(), "a worker is added");
        let (checked, pace) = (Arc::clone(&member), self.pace);
        let check = tokio::spawn(async move { check::run(&checked, pace).await });
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.push((id, AbortOnDropHandle::new(check)));
        self.all.rcu(|all| {
            let mut all = Vec::clone(all);
            all.push(Arc::clone(&member));
            all
        });
        Ok(id)
    }

    /// Takes a worker out. What it has been sent goes on; nothing else goes there,
    /// and its series are gone. Whether it was there.
    pub(super) fn remove(&self, id: u64) -> bool {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let there = checks.iter().any(|(checked, _)| *checked == id);
        checks.retain(|(checked, _)| *checked != id);
        self.all.rcu(|all| {
            let mut all = Vec::clone(all);
            all.retain(|member| member.id != id);
            all
        });
        self.monitor.remove(id);
        there
    }

    /// Who serves `model`; any worker does without one.
    pub(super) fn serving(&self, model: Option<&str>) -> Serving<Arc<Member>> {
        let all = self.all();
        let served: Vec<Served> = all.iter().map(|member| member.served()).collect();
        match serving(&served, model) {
            Serving::These(at) => {
                let those = at.into_iter().map(|at| Arc::clone(&all[at]));
                Serving::These(those.collect())
            }
            Serving::Nobody => Serving::Nobody,
            Serving::Untold => Serving::Untold,
        }
    }

    /// Whether any worker lists this model.
    pub(super) fn list(&self, model: &str) -> bool {
        let all = self.all.load();
        all.iter().any(|member| member.known().served.lists(model))
    }

    /// The one model that is served, if there is just one.
    pub(super) fn only_model(&self) -> Option<String> {
        let all = self.all.load();
        let mut only: Option<String> = None;
        for served in all.iter().map(|member| member.served()) {
            match &served {
                Served::Unlisted => return None,
                _ => {
                    for name in served.names() {
                        if only.as_ref().is_some_and(|only| only != name) {
                            return None;
                        }
                        only = Some(name.clone());
                    }
                }
            }
        }
        only
    }
}

/// The label for what a worker says it does.
fn known_type(said: Option<&str>) -> &'static str {
    match said {
        Some("prefill") => "prefill",
        Some("decode") => "decode",
        _ => "aggregated",
    }
}
