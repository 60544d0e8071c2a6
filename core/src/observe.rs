//! Reading the gate's counts.

use crate::budget::Lack;
use crate::counters::Event;
use crate::engine_limits::Epoch;
use crate::error::{Counts, Lane, Limit, Overload, Rejection, Scope};
use crate::limits::Limits;
use crate::shared::{Full, Shared};
use crate::snapshot::{LaneSnapshot, Snapshot};
use crate::word::{Kind, Word};

/// How often a reading that something moved under is repeated.
const ROUNDS: usize = 8;

/// All share words and the limits they are measured by, read one after another.
#[derive(PartialEq)]
struct Words {
    words: Vec<Word>,
    epoch: Epoch,
    running: u32,
    waiting: u32,
}

impl Words {
    fn limit(&self, kind: Kind) -> i64 {
        i64::from(match kind {
            Kind::Running => self.running,
            Kind::Waiting => self.waiting,
        })
    }

    /// What one rank holds.
    fn rank(&self, home: usize, kind: Kind) -> u64 {
        let room = i64::from(self.words[home].own(kind));
        u64::try_from(self.limit(kind) - room).unwrap_or(0)
    }

    /// What the worker holds: its capacity that does not lie free.
    fn worker(&self, kind: Kind) -> u64 {
        let free: i64 = self
            .words
            .iter()
            .map(|word| i64::from(word.free(kind)))
            .sum();
        u64::try_from(self.limit(kind) * self.words.len() as i64 - free).unwrap_or(0)
    }
}

impl Shared {
    /// A consistent reading per lane. Each rank's counts are one word; what
    /// *unspecified* holds is derived from all words, which are read again while
    /// one moves. After a few rounds the last reading counts, with *unspecified*
    /// never below 0.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let words = self.words();
        let mut lanes: Vec<_> = (0..self.lanes()).map(|lane| self.read_lane(lane)).collect();
        let ranks = 1..lanes.len().min(words.words.len() + 1);
        for lane in ranks.clone() {
            lanes[lane].running = words.rank(lane - 1, Kind::Running);
            lanes[lane].waiting = words.rank(lane - 1, Kind::Waiting);
        }
        let of_ranks = |kind| {
            ranks
                .clone()
                .map(|lane| words.rank(lane - 1, kind))
                .sum::<u64>()
        };
        let derived = |kind| words.worker(kind).saturating_sub(of_ranks(kind));
        lanes[0].running = derived(Kind::Running);
        lanes[0].waiting = derived(Kind::Waiting).min(lanes[0].running);
        let sum = |count: fn(&LaneSnapshot) -> u64| lanes.iter().map(count).sum();
        let worker = Counts {
            running: sum(|lane| lane.running),
            waiting: sum(|lane| lane.waiting),
            queued: sum(|lane| lane.queued),
        };
        Snapshot {
            limits: self.limits(),
            worker,
            lanes,
        }
    }

    fn words(&self) -> Words {
        let mut last = self.read_words();
        for _ in 0..ROUNDS {
            let again = self.read_words();
            let settled = again == last;
            last = again;
            if settled {
                break;
            }
        }
        last
    }

    fn read_words(&self) -> Words {
        let (running, waiting) = self.budget.limits();
        let words = self.budget.shares().map(|share| share.load()).collect();
        // After the words: a change of limits in between shows as two epochs.
        Words {
            words,
            epoch: self.budget.epoch(),
            running,
            waiting,
        }
    }

    fn limits(&self) -> Limits {
        let (engine_request_limit, engine_request_waiting_limit) = self.budget.limits();
        let queue = self.total.read().1 / self.budget.len() as u64;
        Limits {
            engine_request_limit,
            engine_request_waiting_limit,
            request_queue_limit: queue as u32,
        }
    }

    /// What one lane counts; what it holds is filled in from the words.
    fn read_lane(&self, index: u32) -> LaneSnapshot {
        let lane = self.lane(index);
        let queue = lane.queue.read();
        let mut seen = LaneSnapshot {
            queued: queue.queued,
            offered: queue.offered,
            admitted_direct: lane.counters.total(Event::AdmittedDirect),
            admitted_queue: lane.counters.total(Event::AdmittedQueue),
            rejected_rank: lane.counters.total(Event::RejectedRank),
            rejected_worker: lane.counters.total(Event::RejectedWorker),
            cancelled: lane.counters.total(Event::Cancelled),
            ..LaneSnapshot::new(lane.name)
        };
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
                    _ => self.nearest(lane),
                }
            }
        }
    }

    /// Somebody waits for capacity that has come free, and a turn is on its way:
    /// the limit that those who wait leave least of, its rank's own first.
    fn nearest(&self, lane: u32) -> (Limit, bool) {
        let own = lane.checked_sub(1).map(|home| {
            let word = self.budget.share(home as usize).load();
            let queued = self.lane(lane).queue.read().queued as i64;
            move |kind| i64::from(word.own(kind)) - queued
        });
        let queued = self.total.read().0 as i64;
        let worker = |kind| self.budget.free(kind) - queued;
        let left = [
            own.as_ref()
                .map(|own| (own(Kind::Running), Limit::EngineRequest, false)),
            own.as_ref()
                .map(|own| (own(Kind::Waiting), Limit::EngineRequestWaiting, false)),
            Some((worker(Kind::Running), Limit::EngineRequest, true)),
            Some((worker(Kind::Waiting), Limit::EngineRequestWaiting, true)),
        ];
        let (_, limit, of_worker) = left
            .into_iter()
            .flatten()
            .min_by_key(|(left, ..)| *left)
            .expect("the worker's are always there");
        (limit, of_worker)
    }

    fn refuse(&self, lane: u32, limit: Limit, of_worker: bool) -> Rejection {
        let scope = self.scope(lane);
        let state = self.lane(lane);
        state.counters.count(match scope {
            Scope::Rank(_) => Event::RejectedRank,
            Scope::Worker => Event::RejectedWorker,
        });
        let (running, waiting) = self.budget.limits();
        let (times, counts) = match lane.checked_sub(1) {
            Some(home) if !of_worker => {
                let word = self.budget.share(home as usize).load();
                let held = |limit: u32, kind| i64::from(limit) - i64::from(word.own(kind));
                let queued = state.queue.read().queued;
                (
                    1,
                    [
                        held(running, Kind::Running),
                        held(waiting, Kind::Waiting),
                        queued as i64,
                    ],
                )
            }
            _ => {
                let all = self.budget.len() as i64;
                let held = |limit: u32, kind| all * i64::from(limit) - self.budget.free(kind);
                let queued = self.total.read().0;
                (
                    all,
                    [
                        held(running, Kind::Running),
                        held(waiting, Kind::Waiting),
                        queued as i64,
                    ],
                )
            }
        };
        let counts = counts.map(|count| u64::try_from(count).unwrap_or(0));
        let [running, waiting, queued] = counts;
        let counts = Counts {
            running,
            waiting,
            queued,
        };
        let value = times as u64 * u64::from(self.limits().get(limit));
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
