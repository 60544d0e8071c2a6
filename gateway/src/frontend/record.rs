//! What became of one request, counted once, when the last that hold it are done.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use metrics::SharedString;

use super::metrics::{Labels, Metrics};
use super::workers::Workers;
use crate::policy::Inside;
use crate::server::drain::Drain;

/// How a request ended, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// Refused: every worker was overloaded.
    Rejected,
    /// Nobody was there to answer, or the frontend was shutting down.
    Unavailable,
    /// The client's own mistake.
    ClientError,
    /// A worker failed, before its answer or within it.
    WorkerError,
    /// The client left.
    Left,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Rejected,
        Self::Unavailable,
        Self::ClientError,
        Self::WorkerError,
        Self::Left,
    ];

    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Rejected => "rejected",
            Self::Unavailable => "unavailable",
            Self::ClientError => "client_error",
            Self::WorkerError => "worker_error",
            Self::Left => "left",
        }
    }

    /// What a worker's answer of this status amounts to, once it has ended.
    pub(super) fn of(status: StatusCode) -> Self {
        if status.is_client_error() {
            Self::ClientError
        } else if status == StatusCode::SERVICE_UNAVAILABLE {
            Self::Unavailable
        } else if status.is_server_error() {
            Self::WorkerError
        } else {
            Self::Ok
        }
    }
}

/// The model of a request before it is known to be one that is served.
pub(super) const UNKNOWN: &str = "unknown";

/// One request's. Dropped without a word, its client has left.
#[derive(Debug)]
pub(super) struct Record {
    metrics: Arc<Metrics>,
    begun: Instant,
    labels: Mutex<Labels>,
    first_token: OnceLock<Instant>,
    outcome: Mutex<Outcome>,
    /// What it is to the policy, if there is one, until it was served.
    followed: Mutex<Option<Followed>>,
}

/// What hears of a request that the policy let in.
#[derive(Debug)]
struct Followed {
    inside: Inside<Workers>,
    drain: Arc<Drain>,
}

impl Record {
    pub(super) fn new(metrics: Arc<Metrics>, endpoint: &'static str) -> Self {
        metrics.in_flight(true);
        Self {
            metrics,
            begun: Instant::now(),
            labels: Mutex::new(Labels {
                model: SharedString::const_str(UNKNOWN),
                endpoint,
            }),
            first_token: OnceLock::new(),
            outcome: Mutex::new(Outcome::Left),
            followed: Mutex::default(),
        }
    }

    /// It is for this model, which is served.
    pub(super) fn is_for(&self, model: &str) {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        labels.model = SharedString::from(model.to_owned());
        self.metrics.serves(&labels);
    }

    /// Its first token has come.
    pub(super) fn first_token(&self) {
        self.first_token.get_or_init(Instant::now);
        if let Some(followed) = &mut *self.followed_by() {
            followed.inside.first_token();
        }
    }

    /// The policy follows it from now on, and `drain` hears when a worker is done with it.
    pub(super) fn followed(&self, inside: Inside<Workers>, drain: &Arc<Drain>) {
        let drain = Arc::clone(drain);
        *self.followed_by() = Some(Followed { inside, drain });
    }

    /// The policy follows it no longer: no worker had it.
    pub(super) fn unfollowed(&self) -> Option<Inside<Workers>> {
        Some(self.followed_by().take()?.inside)
    }

    /// It was answered to the end with so many tokens; none are not known.
    pub(super) fn served(&self, tokens: u64) {
        if let Some(Followed { inside, drain }) = self.followed_by().take() {
            drain.done();
            inside.ended((tokens > 0).then_some(tokens));
        }
    }

    fn followed_by(&self) -> MutexGuard<'_, Option<Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waited so long for the policy to let it in.
    pub(super) fn waited(&self, class: String, time: Duration) {
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        self.metrics.waited(&labels, class, time);
    }

    /// Whether it ends with a refusal, as it is now.
    pub(super) fn is_rejected(&self) -> bool {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) == Outcome::Rejected
    }

    /// How it ends; the last word counts.
    pub(super) fn ends(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = *self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |at: &Instant| at.saturating_duration_since(self.begun);
        let first_token = self.first_token.get().map(since);
        let had = ![Outcome::Rejected, Outcome::Unavailable].contains(&outcome);
        if let Some(followed) = self.followed_by().take().filter(|_| had) {
            followed.drain.done();
        }
        self.metrics.in_flight(false);
        self.metrics
            .ended(&labels, outcome, first_token, self.begun.elapsed());
    }
}
