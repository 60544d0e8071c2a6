//! Limits: what was set, what the engine reported, and what is in force.

use std::fmt;

use crate::error::Limit;

/// Largest engine request limit per rank: what a field of the share word holds;
/// all ranks together at most [`MAX_WORKER_ENGINE_LIMIT`].
pub const MAX_ENGINE_REQUEST_LIMIT: u32 = crate::word::MAX_LIMIT;
/// Largest engine request waiting limit per rank.
pub const MAX_ENGINE_REQUEST_WAITING_LIMIT: u32 = crate::word::MAX_LIMIT;
/// Largest request queue limit per rank; all ranks together at most
/// [`MAX_WORKER_QUEUE_LIMIT`].
pub const MAX_REQUEST_QUEUE_LIMIT: u32 = crate::queue::MAX_QUEUE_LIMIT;
/// Largest request queue limit of a worker, all ranks together.
pub const MAX_WORKER_QUEUE_LIMIT: u32 = crate::queue::MAX_QUEUED as u32;
/// Largest engine limit of a worker, all ranks together.
pub const MAX_WORKER_ENGINE_LIMIT: u32 = crate::queue::MAX_QUEUED as u32;
/// Most ranks that one engine may report.
pub const MAX_RANKS: usize = 1_024;

/// Engine limits, per rank, while neither a setting nor a report says otherwise.
pub const FALLBACK_ENGINE_LIMIT: u32 = 10_000;
/// Queue limit, per rank, while neither a setting nor a report says otherwise.
pub const FALLBACK_QUEUE_LIMIT: u32 = 20_000;

/// The limits that somebody set. `None` leaves a limit to its default, or, in
/// [`Gate::set_limits`](crate::Gate::set_limits), as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Running requests per rank, 1 to [`MAX_ENGINE_REQUEST_LIMIT`].
    pub engine_request_limit: Option<u32>,
    /// Waiting requests per rank, 1 to [`MAX_ENGINE_REQUEST_WAITING_LIMIT`].
    pub engine_request_waiting_limit: Option<u32>,
    /// Queued requests per rank, 0 to [`MAX_REQUEST_QUEUE_LIMIT`].
    pub request_queue_limit: Option<u32>,
}

impl Settings {
    /// These settings where they say something, `older` where they do not.
    #[must_use]
    pub fn or(self, older: Settings) -> Settings {
        Settings {
            engine_request_limit: self.engine_request_limit.or(older.engine_request_limit),
            engine_request_waiting_limit: self
                .engine_request_waiting_limit
                .or(older.engine_request_waiting_limit),
            request_queue_limit: self.request_queue_limit.or(older.request_queue_limit),
        }
    }

    /// The limits in force: each setting by itself, else the default that
    /// follows the engine's `max_num_seqs`, else the fallback.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn resolve(self, max_num_seqs: Option<u32>) -> Result<Limits, LimitError> {
        self.resolve_for(1, max_num_seqs)
    }

    /// The limits in force for a worker of so many ranks; see [`resolve`](Self::resolve).
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn resolve_for(
        self,
        ranks: usize,
        max_num_seqs: Option<u32>,
    ) -> Result<Limits, LimitError> {
        if max_num_seqs == Some(0) {
            // An engine that runs nothing, whatever was set.
            return Err(LimitError {
                limit: Limit::EngineRequest,
                value: 0,
                min: 1,
                max: MAX_ENGINE_REQUEST_LIMIT,
            });
        }
        let engine = max_num_seqs.unwrap_or(FALLBACK_ENGINE_LIMIT);
        let queue = max_num_seqs.map_or(FALLBACK_QUEUE_LIMIT, |n| n.saturating_mul(2));
        Limits {
            engine_request_limit: self.engine_request_limit.unwrap_or(engine),
            engine_request_waiting_limit: self.engine_request_waiting_limit.unwrap_or(engine),
            request_queue_limit: self.request_queue_limit.unwrap_or(queue),
        }
        .checked(ranks)
    }
}

/// The limits in force, each per rank; a worker of `n` ranks has `n` times as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests admitted and not finished.
    pub engine_request_limit: u32,
    /// Admitted requests whose first token has not come.
    pub engine_request_waiting_limit: u32,
    /// Requests that wait in the gate.
    pub request_queue_limit: u32,
}

impl Limits {
    fn checked(self, ranks: usize) -> Result<Self, LimitError> {
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX).max(1);
        let max_queue = MAX_REQUEST_QUEUE_LIMIT.min(MAX_WORKER_QUEUE_LIMIT / ranks);
        let check = |limit, value, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(LimitError {
                    limit,
                    value,
                    min,
                    max,
                })
            }
        };
        let max = MAX_ENGINE_REQUEST_LIMIT.min(MAX_WORKER_ENGINE_LIMIT / ranks);
        check(Limit::EngineRequest, self.engine_request_limit, 1, max)?;
        let waiting = self.engine_request_waiting_limit;
        check(Limit::EngineRequestWaiting, waiting, 1, max)?;
        check(Limit::RequestQueue, self.request_queue_limit, 0, max_queue)?;
        Ok(self)
    }

    /// One limit's value, for a single rank.
    pub fn get(&self, limit: Limit) -> u32 {
        match limit {
            Limit::EngineRequest => self.engine_request_limit,
            Limit::EngineRequestWaiting => self.engine_request_waiting_limit,
            Limit::RequestQueue => self.request_queue_limit,
        }
    }
}

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineReport {
    /// Ids of its data-parallel ranks: any `u32`, in any order, without duplicates.
    pub ranks: Vec<u32>,
    /// Sequences that one rank runs at once; the defaults follow it.
    pub max_num_seqs: Option<u32>,
}

impl EngineReport {
    /// Checks the report by itself and gives its rank ids in ascending order.
    ///
    /// # Errors
    /// No rank, a duplicate, or more than [`MAX_RANKS`].
    pub fn sorted_ranks(&self) -> Result<Vec<u32>, ReportError> {
        if self.ranks.is_empty() {
            return Err(ReportError::NoRanks);
        }
        if self.ranks.len() > MAX_RANKS {
            return Err(ReportError::TooManyRanks(self.ranks.len()));
        }
        let mut ranks = self.ranks.clone();
        ranks.sort_unstable();
        match ranks.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ReportError::DuplicateRank(pair[0])),
            None => Ok(ranks),
        }
    }
}

/// A limit outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitError {
    /// Which limit.
    pub limit: Limit,
    /// What was asked for.
    pub value: u32,
    /// The smallest value accepted.
    pub min: u32,
    /// The largest value accepted.
    pub max: u32,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitError {
            limit,
            value,
            min,
            max,
        } = self;
        write!(
            f,
            "{limit} = {value} is out of range: an integer from {min} to {max} is accepted"
        )
    }
}

impl std::error::Error for LimitError {}

/// An engine report that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// The report names no rank.
    NoRanks,
    /// The report names this rank more than once.
    DuplicateRank(u32),
    /// The report names this many ranks; at most
    /// [`MAX_RANKS`] are accepted.
    TooManyRanks(usize),
    /// The defaults that follow from `max_num_seqs` are out of range.
    Limit(LimitError),
    /// The ranks were reported before, and were these; a restart is needed to change them.
    OtherRanks(Vec<u32>),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("engine report refused: ")?;
        match self {
            ReportError::NoRanks => f.write_str("it names no rank; at least one is needed"),
            ReportError::DuplicateRank(id) => write!(f, "it names rank {id} more than once"),
            ReportError::TooManyRanks(n) => {
                write!(f, "it names {n} ranks; at most {} are accepted", MAX_RANKS)
            }
            ReportError::Limit(e) => write!(f, "max_num_seqs does not fit: {e}"),
            ReportError::OtherRanks(ranks) => {
                write!(
                    f,
                    "the ranks are {ranks:?} since the first report; restart to change them"
                )
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReportError::Limit(e) => Some(e),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_default_follows_the_report_by_itself() {
        let explicit = Settings {
            engine_request_limit: Some(4),
            ..Settings::default()
        };
        let limits = explicit.resolve(Some(256)).unwrap();
        assert_eq!(limits.engine_request_limit, 4);
        assert_eq!(limits.engine_request_waiting_limit, 256);
        assert_eq!(limits.request_queue_limit, 512);
        let limits = explicit.resolve(None).unwrap();
        assert_eq!(limits.engine_request_waiting_limit, 10_000);
        assert_eq!(limits.request_queue_limit, 20_000);
    }

    fn explicit_all() -> Settings {
        Settings {
            engine_request_limit: Some(4),
            engine_request_waiting_limit: Some(4),
            request_queue_limit: Some(4),
        }
    }

    #[test]
    fn limits_out_of_range_name_the_range() {
        let zero = Settings {
            engine_request_limit: Some(0),
            ..Settings::default()
        };
        assert_eq!(
            zero.resolve(None).unwrap_err().to_string(),
            "engine_request_limit = 0 is out of range: an integer from 1 to 12287 is accepted"
        );
        let huge = Settings {
            request_queue_limit: Some(u32::MAX),
            ..Settings::default()
        };
        assert!(
            huge.resolve(None)
                .unwrap_err()
                .to_string()
                .contains("from 0 to 131071")
        );
        assert!(Settings::default().resolve(Some(u32::MAX)).is_err());
        assert!(explicit_all().resolve(Some(0)).is_err());
    }

    #[test]
    fn reports_are_checked() {
        let report = |ranks: Vec<u32>| EngineReport {
            ranks,
            max_num_seqs: None,
        };
        assert_eq!(report(vec![]).sorted_ranks(), Err(ReportError::NoRanks));
        assert_eq!(
            report(vec![7, 1, 7]).sorted_ranks(),
            Err(ReportError::DuplicateRank(7))
        );
        assert_eq!(
            report(vec![u32::MAX, 0]).sorted_ranks(),
            Ok(vec![0, u32::MAX])
        );
        let many = (0..=MAX_RANKS as u32).collect();
        assert_eq!(
            report(many).sorted_ranks(),
            Err(ReportError::TooManyRanks(1025))
        );
    }
}
