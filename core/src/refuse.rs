//! What a refused request is told: the limit, its value, and the counts there.

use crate::counters::Event;
use crate::enqueue::Full;
use crate::error::{Counts, Lane, Limit, Overload, Rejection, Scope};
use crate::reached::Reached;
use crate::shared::Shared;
use crate::word::Kind;

impl Shared {
    /// A request that could not enter and did not ask for a place in the queue.
    #[cold]
    pub(crate) fn refuse_entry(&self, lane: u32, reached: Reached) -> Rejection {
        if self.is_stopped() {
            return Rejection::Stopped;
        }
        self.refuse(lane, reached.limit(), reached.of_worker)
    }

    /// A request that could neither enter nor queue.
    #[cold]
    pub(crate) fn refuse_queue(&self, lane: u32, reached: Reached, full: Full) -> Rejection {
        if self.total.read().1 == 0 {
            return self.refuse_entry(lane, reached);
        }
        self.refuse(lane, Limit::RequestQueue, full == Full::Worker)
    }

    fn refuse(&self, lane: u32, limit: Limit, of_worker: bool) -> Rejection {
        let scope = self.scope(lane);
        let state = self.lane(lane);
        state.counters.count(match scope {
            Scope::Rank(_) => Event::RejectedRank,
            Scope::Worker => Event::RejectedWorker,
        });
        let (times, counts, queue_limit) = match lane.checked_sub(1) {
            Some(home) if !of_worker => self.rank_at(home as usize),
            _ => self.worker_at(),
        };
        let value = match limit {
            Limit::EngineRequest => times * u64::from(self.budget.limits.get(Kind::Running)),
            Limit::EngineRequestWaiting => times * u64::from(self.budget.limits.get(Kind::Waiting)),
            Limit::RequestQueue => queue_limit,
        };
        Rejection::Overloaded(Overload {
            lane: state.name,
            scope,
            limit,
            of_worker,
            value,
            counts,
        })
    }

    /// How often the engine limits count at a rank, what it holds, its queue limit.
    fn rank_at(&self, home: usize) -> (u64, Counts, u64) {
        let word = self.budget.share(home).load();
        let held = |kind| i64::from(self.budget.limits.get(kind)) - i64::from(word.own(kind));
        let queue = self.lane(home as u32 + 1).queue.read();
        let counts = Counts {
            running: at_least_0(held(Kind::Running)),
            waiting: at_least_0(held(Kind::Waiting)),
            queued: queue.queued,
        };
        (1, counts, queue.limit)
    }

    /// The same of the worker.
    fn worker_at(&self) -> (u64, Counts, u64) {
        let (running, waiting) = self.budget.held();
        let (queued, queue_limit) = self.total.read();
        let counts = Counts {
            running: at_least_0(running),
            waiting: at_least_0(waiting),
            queued,
        };
        (self.budget.len() as u64, counts, queue_limit)
    }

    fn scope(&self, lane: u32) -> Scope {
        match self.lane(lane).name {
            Lane::Rank(id) if self.anybody_could() => Scope::Rank(id),
            _ => Scope::Worker,
        }
    }

    /// Whether a request of some lane could queue or enter: an unranked one can
    /// whenever any other can.
    fn anybody_could(&self) -> bool {
        let (queued, limit) = self.total.read();
        queued < limit || self.budget.full().is_none()
    }
}

/// Words read one after another may disagree for a moment.
fn at_least_0(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
