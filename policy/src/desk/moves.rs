//! What became of whom.

use std::time::Duration;

use crate::class::ClassId;
use crate::judge::Inside;
use crate::profile::Profile;
use crate::reason::Reason;

/// What the gate says to a request that would enter now.
#[derive(Debug)]
pub enum Entry<P> {
    /// It is in, and holds this.
    In(P),
    /// There is no room for anybody.
    Full,
    /// There is no room on the rank that it asks for.
    RankFull,
}

/// A request that is not held any more, and why.
pub type Move<T, P> = (T, Outcome<P>);

/// Requests in the order in which they moved.
pub type Moves<T, P> = Vec<Move<T, P>>;

/// What became of a request.
#[derive(Debug)]
pub enum Outcome<P> {
    /// It is inside, and holds a permit of the gate.
    Enters(P, Inside),
    /// It is refused.
    Refused(Reason),
    /// It is up to the gate alone, whose queue it may wait in.
    GateAlone(Alone),
}

/// A request that is up to the gate alone. If the gate lets it in, say so by
/// [`Desk::entered`](super::Desk::entered).
#[derive(Debug)]
pub struct Alone {
    pub(super) profile: Profile,
    pub(super) arrived: Duration,
    pub(super) concurrency: u64,
    pub(super) leaves: Option<Duration>,
}

impl Alone {
    /// Its class.
    #[must_use]
    pub fn class(&self) -> ClassId {
        self.profile.class
    }

    /// When it is to be sent away, wherever it waits: it was held, and its class says
    /// for how long. `None` for one that was never held.
    #[must_use]
    pub fn leaves(&self) -> Option<Duration> {
        self.leaves
    }
}
