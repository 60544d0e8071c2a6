//! What a caller can be told instead of getting in.

use std::fmt;

/// Where a request is accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Requests without a rank, or with one that the engine did not report.
    Unspecified,
    /// Requests for this data-parallel rank.
    Rank(u32),
}

/// Displays as the metrics label: `unspecified`, or the rank's id.
impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::Unspecified => f.write_str("unspecified"),
            Lane::Rank(id) => write!(f, "{id}"),
        }
    }
}

/// How far an overload reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only this rank: the worker could still admit or queue something else.
    Rank(u32),
    /// The whole worker, or a request that named no rank.
    Worker,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Rank(id) => write!(f, "rank {id}"),
            Scope::Worker => f.write_str("worker"),
        }
    }
}

/// Which of the three limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Requests admitted and not finished.
    EngineRequest,
    /// Admitted requests whose first token has not come.
    EngineRequestWaiting,
    /// Requests that wait in the gate.
    RequestQueue,
}

/// Displays as the setting's name, such as `engine_request_limit`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::EngineRequest => "engine_request_limit",
            Limit::EngineRequestWaiting => "engine_request_waiting_limit",
            Limit::RequestQueue => "request_queue_limit",
        })
    }
}

/// The requests that hold something, in one lane or in the whole worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Admitted and not finished, offered ones included.
    pub running: u64,
    /// The part of `running` whose first token has not come.
    pub waiting: u64,
    /// Not admitted yet; holds no engine capacity.
    pub queued: u64,
}

/// Why a request was refused: the limit that stood in the way, and how full
/// its place was at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// Where the request would have been accounted.
    pub lane: Lane,
    /// How far the overload reaches.
    pub scope: Scope,
    /// The limit that stood in the way.
    pub limit: Limit,
    /// Whether `limit` is the whole worker's (all ranks together) or one rank's own.
    pub of_worker: bool,
    /// The limit's value at that place.
    pub value: u64,
    /// What that place held: the lane's counts, or the worker's with `of_worker`.
    pub counts: Counts,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place: &dyn fmt::Display = match (self.of_worker, &self.lane) {
            (false, Lane::Rank(id)) => &Scope::Rank(*id),
            _ => &Scope::Worker,
        };
        let Counts {
            running,
            waiting,
            queued,
        } = self.counts;
        write!(
            f,
            "{place} at {} {} (running {running}, waiting {waiting}, queued {queued})",
            self.limit, self.value
        )
    }
}

/// A request that got neither a permit nor a place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A limit was reached.
    Overloaded(Overload),
    /// The gate was stopped; no capacity will come.
    Stopped,
}

/// The answer of the calls that never queue; the same as a [`Rejection`].
pub type Refusal = Rejection;

impl Rejection {
    /// How far the overload reaches; `None` for a stopped gate.
    pub fn scope(&self) -> Option<Scope> {
        self.overload().map(|overload| overload.scope)
    }

    /// The limit that stood in the way; `None` for a stopped gate.
    pub fn overload(&self) -> Option<&Overload> {
        match self {
            Rejection::Overloaded(overload) => Some(overload),
            Rejection::Stopped => None,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Overloaded(overload) => write!(f, "Server overloaded: {overload}"),
            Rejection::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Rejection {}

/// The gate was stopped while a request waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server unavailable: the gate has been stopped")
    }
}

impl std::error::Error for Stopped {}

impl From<Stopped> for Rejection {
    fn from(_: Stopped) -> Self {
        Rejection::Stopped
    }
}
