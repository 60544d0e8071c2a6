//! One worker, as the frontend knows it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::health::Health;
use super::hops::Hops;
use super::mark::{Mark, Scope};
use super::models::Served;
use super::trial::Trial;
use crate::monitor;
use crate::proxy::engine::{Engine, EngineUrl};

/// A worker that requests may go to.
#[derive(Debug)]
pub struct Member {
    /// Its name within this frontend: the label `worker_id`.
    pub id: u64,
    /// The connections to it.
    pub(super) http: Engine,
    /// Its load.
    pub(super) watched: monitor::Member,
    /// What became of what was sent there.
    pub(super) hops: Hops,
    /// Asks for a check before its time.
    pub(super) recheck: Notify,
    known: Mutex<Known>,
    trial: Mutex<Trial>,
}

/// What is known of it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) health: Health,
    pub(super) served: Served,
    pub(super) mark: Mark,
}

impl Member {
    /// Nothing of it is known. A refusal counts for `mark_time`.
    pub(super) fn new(
        id: u64,
        http: Engine,
        watched: monitor::Member,
        mark_time: Duration,
    ) -> Self {
        let known = Known {
            health: Health::default(),
            served: Served::default(),
            mark: Mark::new(mark_time),
        };
        Self {
            id,
            http,
            watched,
            hops: Hops::default(),
            recheck: Notify::new(),
            known: Mutex::new(known),
            trial: Mutex::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &EngineUrl {
        self.http.url()
    }

    /// Whether it answers.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.known().health.is_well()
    }

    /// What it serves.
    #[must_use]
    pub fn served(&self) -> Served {
        self.known().served.clone()
    }

    /// What became of what was sent there.
    #[must_use]
    pub fn hops(&self) -> &Hops {
        &self.hops
    }

    /// Takes in what it serves now.
    pub(super) fn serves(&self, served: Served) {
        self.watched.serves(served.names().cloned());
        self.known().served = served;
    }

    /// It refused a request.
    pub(super) fn refused(&self, scope: Scope) {
        if scope == Scope::Worker {
            self.trial().refused();
        }
        self.known().mark.refused(scope, Instant::now());
        self.watched.tell_news();
    }

    /// How many it gets of those that a policy holds.
    pub(super) fn trial(&self) -> MutexGuard<'_, Trial> {
        self.trial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No connection to it could be made. Whether that is news.
    pub(super) fn unreachable(&self) -> bool {
        self.recheck.notify_one();
        self.known().health.unreachable()
    }

    /// What is known of it, to be read or changed at once.
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
