//! Why a window says nothing about the waiting limit.

use thiserror::Error;
use tidegate::Lane;

/// A window from which no limit follows. Displays the reason and the way out.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Unusable {
    /// Requests were held at the gate.
    #[error(
        "requests queued at the gate ({0}): it, and not the load, decided how many waited. \
         Raise the engine limits for the measurement, or measure at a lower load"
    )]
    Queueing(Lane),
    /// Requests were refused.
    #[error(
        "{rejected} requests were refused ({lane}): the load was more than the limits let in. \
         Raise the engine limits for the measurement, or measure at a lower load"
    )]
    Rejections {
        /// Where.
        lane: Lane,
        /// How many.
        rejected: u64,
    },
    /// Too many left before they were admitted.
    #[error(
        "{cancelled} of {received} requests left before admission ({lane}), more than one in 20: \
         clients that give up make the wait look shorter"
    )]
    Cancellations {
        /// Where.
        lane: Lane,
        /// How many left.
        cancelled: u64,
        /// Of how many.
        received: u64,
    },
    /// Too few readings for an average.
    #[error(
        "too few samples: {0} of the worker's metrics where at least 2 are needed. \
             Choose a longer --interval"
    )]
    FewReadings(usize),
    /// Too few requests for an average.
    #[error(
        "too few samples: {0} requests were admitted where at least 20 are needed. \
         Choose a longer --interval, or measure under load"
    )]
    FewAdmissions(u64),
    /// Requests whose rank is not known, on a worker of several.
    #[error(
        "{0} requests named no known rank, on a worker of several ranks: which rank they \
         waited at is not known. Let every request name its rank for the measurement"
    )]
    Unranked(u64),
    /// Such a rank is not there.
    #[error("rank {asked} is not there: the worker has {known}")]
    NoSuchRank {
        /// The rank asked for.
        asked: u32,
        /// Those that are there.
        known: String,
    },
    /// The worker's ranks changed within the window.
    #[error("the worker's ranks changed meanwhile: its engine reported. Measure again")]
    RanksChanged,
    /// Counters went back.
    #[error("counters went back ({0}): the worker was restarted meanwhile. Measure again")]
    Restarted(Lane),
    /// Time went back, or stood still.
    #[error("the samples are not in the order of time")]
    Time,
}

impl Unusable {
    /// A short name for programs.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Queueing(_) => "queueing",
            Self::Rejections { .. } => "rejections",
            Self::Cancellations { .. } => "cancellations",
            Self::FewReadings(_) | Self::FewAdmissions(_) => "too_few_samples",
            Self::Unranked(_) => "unspecified_rank",
            Self::NoSuchRank { .. } => "no_such_rank",
            Self::RanksChanged => "ranks_changed",
            Self::Restarted(_) => "restarted",
            Self::Time => "time",
        }
    }

    /// Whether no further reading can make the window usable.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            Self::Cancellations { .. } | Self::FewReadings(_) | Self::FewAdmissions(_)
        )
    }
}
