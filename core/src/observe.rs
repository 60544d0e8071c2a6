//! Reading the gate's counts.

use crate::budget::Lack;
use crate::counters::Event;
use crate::error::{Counts, Lane, Limit, Overload, Rejection, Scope};
use crate::limits::Limits;
use crate::shared::{Full, Shared};
use crate::snapshot::{LaneSnapshot, Snapshot};
use crate::word::Kind;

/// How often a reading that something moved under is repeated.
const ROUNDS: usize = 8;

impl Shared {
    /// A consistent reading per lane: taken again while something moves under it.
    /// After a few rounds the last one counts, with *unspecified*'s derived
    /// counts never below 0.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut last = self.read();
        for _ in 0..ROUNDS {
            let again = self.read();
            if again == last {
                break;
            }
            last = again;
        }
        last
    }

    fn read(&self) -> Snapshot {
        let limits = self.config_limits();
        let (running_limit, waiting_limit) = self.budget.limits();
        let mut lanes: Vec<_> = (0..self.lanes()).map(|lane| self.read_lane(lane)).collect();
        let of_ranks = |count: fn(&LaneSnapshot) -> u64| lanes[1..].iter().map(count).sum::<u64>();
        // What no rank accounts for of the capacity that is not free.
        let (running, waiting) = (
            self.held(Kind::Running, running_limit)
                .saturating_sub(of_ranks(|lane| lane.running)),
            self.held(Kind::Waiting, waiting_limit)
                .saturating_sub(of_ranks(|lane| lane.waiting)),
        );
        lanes[0].running = running;
        lanes[0].waiting = waiting;
        let worker = Counts {
            running: lanes.iter().map(|lane| lane.running).sum(),
            waiting: lanes.iter().map(|lane| lane.waiting).sum(),
            queued: lanes.iter().map(|lane| lane.queued).sum(),
        };
        Snapshot {
            limits,
            worker,
            lanes,
        }
    }

    fn config_limits(&self) -> Limits {
        let (engine_request_limit, engine_request_waiting_limit) = self.budget.limits();
        let queue = self.total.read().1 / self.budget.len() as u64;
        Limits {
            engine_request_limit,
            engine_request_waiting_limit,
            request_queue_limit: queue as u32,
        }
    }

    /// Capacity of this kind that is not free, over all shares.
    fn held(&self, kind: Kind, per_rank: u32) -> u64 {
        let all = i64::from(per_rank) * self.budget.len() as i64;
        let free: i64 = self
            .budget
            .shares()
            .map(|share| i64::from(share.load().free(kind)))
            .sum();
        u64::try_from(all - free).unwrap_or(0)
    }

    fn read_lane(&self, index: u32) -> LaneSnapshot {
        let lane = self.lane(index);
        let mut seen = LaneSnapshot::new(lane.name);
        if let Some(home) = index.checked_sub(1) {
            let (running, waiting) = self.budget.limits();
            let word = self.budget.share(home as usize).load();
            let used = |limit: u32, kind| {
                u64::try_from(i64::from(limit) - i64::from(word.own(kind))).unwrap_or(0)
            };
            seen.running = used(running, Kind::Running);
            seen.waiting = used(waiting, Kind::Waiting);
        }
        let queue = lane.queue.read();
        seen.queued = queue.queued;
        seen.offered = queue.offered;
        seen.admitted_direct = lane.counters.total(Event::AdmittedDirect);
        seen.admitted_queue = lane.counters.total(Event::AdmittedQueue);
        seen.rejected_rank = lane.counters.total(Event::RejectedRank);
        seen.rejected_worker = lane.counters.total(Event::RejectedWorker);
        seen.cancelled = lane.counters.total(Event::Cancelled);
        // Whoever came is somewhere in this sum, so it need not be counted apart.
        seen.received =
            seen.admitted() + seen.rejected() + seen.cancelled + seen.queued + seen.offered;
        seen
    }

    /// A request that could not enter and did not ask for a place in the queue.
    #[cold]
    pub(crate) fn refuse_entry(&self, lane: u32, lack: Lack) -> Rejection {
        if self.is_stopped() {
            return Rejection::Stopped;
        }
        let (limit, of_worker) = self.name(lane, lack);
        self.refuse(lane, limit, of_worker)
    }

    /// A request that could neither enter nor queue.
    #[cold]
    pub(crate) fn refuse_queue(&self, lane: u32, lack: Lack, full: Full) -> Rejection {
        if self.total.read().1 == 0 {
            return self.refuse_entry(lane, lack);
        }
        self.refuse(lane, Limit::RequestQueue, full == Full::Worker)
    }

    /// The limit behind a lack, its rank's own first.
    fn name(&self, lane: u32, lack: Lack) -> (Limit, bool) {
        let named = |kind| match kind {
            Kind::Running => Limit::EngineRequest,
            Kind::Waiting => Limit::EngineRequestWaiting,
        };
        match lack {
            Lack::Own(kind) => (named(kind), false),
            Lack::Worker(kind) => (named(kind), true),
            // Somebody may be waiting for the worker's capacity, or did until
            // a moment ago: with those, it was full within this call.
            Lack::Turn => {
                let own = lane
                    .checked_sub(1)
                    .map(|home| self.budget.share(home as usize).load());
                match own {
                    Some(word) if word.own(Kind::Running) <= 0 => (Limit::EngineRequest, false),
                    Some(word) if word.own(Kind::Waiting) <= 0 => {
                        (Limit::EngineRequestWaiting, false)
                    }
                    _ if self.budget.none_free(Kind::Running) => (Limit::EngineRequest, true),
                    _ if self.budget.none_free(Kind::Waiting) => {
                        (Limit::EngineRequestWaiting, true)
                    }
                    _ => (Limit::EngineRequest, lane == 0),
                }
            }
        }
    }

    fn refuse(&self, lane: u32, limit: Limit, of_worker: bool) -> Rejection {
        let scope = self.scope(lane);
        let state = self.lane(lane);
        state.counters.count(match scope {
            Scope::Rank(_) => Event::RejectedRank,
            Scope::Worker => Event::RejectedWorker,
        });
        let per_rank = u64::from(self.config_limits().get(limit));
        let (value, counts) = if of_worker {
            let (running, waiting) = self.budget.limits();
            let counts = Counts {
                running: self.held(Kind::Running, running),
                waiting: self.held(Kind::Waiting, waiting),
                queued: self.total.read().0,
            };
            (per_rank * self.budget.len() as u64, counts)
        } else {
            (per_rank, self.read_lane(lane).counts())
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

    pub(crate) fn lane_name(&self, lane: u32) -> Lane {
        self.lane(lane).name
    }
}
