//! How the tries at one worker ended, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// How one try at a worker ended. A request makes more than one if it is sent
/// elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Answered to the end, whatever the status.
    Answered,
    /// Refused, for the whole worker.
    RefusedWorker,
    /// Refused, for one rank.
    RefusedRank,
    /// Refused, for the request's class.
    RefusedClass,
    /// No connection: nothing was sent.
    Unreachable,
    /// Answered that it cannot: 502 or 503.
    Unavailable,
    /// Broken off, before the answer or within it.
    Failed,
    /// The client left.
    Left,
}

impl Ended {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Answered,
        Self::RefusedWorker,
        Self::RefusedRank,
        Self::RefusedClass,
        Self::Unreachable,
        Self::Unavailable,
        Self::Failed,
        Self::Left,
    ];

    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::RefusedWorker => "refused_worker",
            Self::RefusedRank => "refused_rank",
            Self::RefusedClass => "refused_class",
            Self::Unreachable => "unreachable",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }
}

/// The counts of one worker.
#[derive(Debug, Default)]
pub struct Hops([AtomicU64; Ended::ALL.len()]);

impl Hops {
    /// One more that ended so.
    pub fn count(&self, ended: Ended) {
        // Relaxed: a statistic, nothing is read through it.
        self.0[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many ended so.
    #[must_use]
    pub fn of(&self, ended: Ended) -> u64 {
        self.0[ended as usize].load(Ordering::Relaxed)
    }
}
