//! What the gate holds and has counted, read at one moment.

use crate::error::{Counts, Lane};
use crate::limits::Limits;

/// Counts and limits of every lane and of the worker.
///
/// A lane's `received` is the sum of what became of its requests:
/// `admitted + rejected + cancelled + queued + offered`. One that moves between these
/// while they are read may be missing for that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The limits in force, per rank.
    pub limits: Limits,
    /// What the worker holds, over all lanes.
    pub worker: Counts,
    /// *Unspecified* first, then the reported ranks in ascending order.
    pub lanes: Vec<LaneSnapshot>,
}

impl Snapshot {
    /// One lane, if it exists.
    pub fn lane(&self, lane: Lane) -> Option<&LaneSnapshot> {
        self.lanes.iter().find(|seen| seen.lane == lane)
    }

    /// How many ranks share the worker's capacity: those reported, or 1 before that.
    pub fn ranks(&self) -> u64 {
        (self.lanes.len() as u64 - 1).max(1)
    }

    /// The sum of one counter over all lanes.
    pub fn total(&self, counter: impl Fn(&LaneSnapshot) -> u64) -> u64 {
        self.lanes.iter().map(counter).sum()
    }
}

/// One lane's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSnapshot {
    /// Which lane.
    pub lane: Lane,
    /// Admitted and not finished, offered ones included.
    pub running: u64,
    /// The part of `running` whose first token has not come.
    pub waiting: u64,
    /// Not admitted yet; holds no engine capacity.
    pub queued: u64,
    /// Holds capacity that it was offered and has not taken up yet.
    pub offered: u64,
    /// Every request once, on entry.
    pub received: u64,
    /// Entered at once.
    pub admitted_direct: u64,
    /// Entered after queueing.
    pub admitted_queue: u64,
    /// Refused while the worker could still admit or queue something else.
    pub rejected_rank: u64,
    /// Refused on behalf of the whole worker.
    pub rejected_worker: u64,
    /// Left before admission.
    pub cancelled: u64,
}

impl LaneSnapshot {
    pub(crate) fn new(lane: Lane) -> Self {
        LaneSnapshot {
            lane,
            running: 0,
            waiting: 0,
            queued: 0,
            offered: 0,
            received: 0,
            admitted_direct: 0,
            admitted_queue: 0,
            rejected_rank: 0,
            rejected_worker: 0,
            cancelled: 0,
        }
    }

    /// The part that is held now.
    pub fn counts(&self) -> Counts {
        Counts {
            running: self.running,
            waiting: self.waiting,
            queued: self.queued,
        }
    }

    /// Admitted either way.
    pub fn admitted(&self) -> u64 {
        self.admitted_direct + self.admitted_queue
    }

    /// Refused in either scope.
    pub fn rejected(&self) -> u64 {
        self.rejected_rank + self.rejected_worker
    }

    /// Whether every request received is accounted for.
    pub fn conserves(&self) -> bool {
        self.received
            == self.admitted() + self.rejected() + self.cancelled + self.queued + self.offered
    }
}
