//! Reading the gate's counts.

use crate::counters::Event;
use crate::engine_limits::TokenCounts;
use crate::error::{Counts, Lane};
use crate::limits::Limits;
use crate::shared::Shared;
use crate::snapshot::{LaneSnapshot, Snapshot};
use crate::sync::thread;
use crate::word::{Kind, Word};

/// How often a reading that something moved under is repeated.
const ROUNDS: usize = 8;

/// All share words and what they are measured by, read one after another.
#[derive(PartialEq)]
struct Words {
    words: Vec<Word>,
    limits: (u32, u32),
    tokens: TokenCounts,
}

/// The part of a pair that is of one kind.
fn of<T>((running, waiting): (T, T), kind: Kind) -> T {
    match kind {
        Kind::Running => running,
        Kind::Waiting => waiting,
    }
}

impl Words {
    /// What one rank holds.
    fn rank(&self, home: usize, kind: Kind) -> u64 {
        let room = i64::from(self.words[home].own(kind));
        u64::try_from(i64::from(of(self.limits, kind)) - room).unwrap_or(0)
    }

    /// What the worker holds: its tokens that do not lie free.
    fn worker(&self, kind: Kind) -> u64 {
        let free: i64 = self
            .words
            .iter()
            .map(|word| i64::from(word.free(kind)))
            .sum();
        u64::try_from(i64::from(self.tokens.of(kind)) - free).unwrap_or(0)
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
            let settled = again == last && !last.tokens.moving();
            last = again;
            if settled {
                break;
            }
            if last.tokens.moving() {
                thread::yield_now();
            }
        }
        last
    }

    fn read_words(&self) -> Words {
        Words {
            limits: self.budget.engine_limits(),
            words: self.budget.shares().map(|share| share.load()).collect(),
            tokens: self.budget.tokens.read(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let (engine_request_limit, engine_request_waiting_limit) = self.budget.engine_limits();
        let queue = match self.lanes() {
            1 => self.total.read().1,
            _ => self.lane(1).queue.read().limit,
        };
        Limits {
            engine_request_limit,
            engine_request_waiting_limit,
            request_queue_limit: queue as u32,
        }
    }

    /// What one lane counts; what it holds is filled in from the words.
    fn read_lane(&self, index: u32) -> LaneSnapshot {
        let lane = self.lane(index);
        // The counters first: a request leaves the queue's count before it is counted
        // elsewhere, so that it is never seen twice (but in both as an offer that the
        // turn is still to settle).
        let mut seen = LaneSnapshot {
            admitted_direct: lane.counters.total(Event::AdmittedDirect),
            admitted_queue: lane.counters.total(Event::AdmittedQueue),
            rejected_rank: lane.counters.total(Event::RejectedRank),
            rejected_worker: lane.counters.total(Event::RejectedWorker),
            cancelled: lane.counters.total(Event::Cancelled),
            ..LaneSnapshot::new(lane.name)
        };
        let queue = lane.queue.read();
        seen.queued = queue.queued;
        seen.offered = queue.offered;
        // Whoever came is somewhere in this sum, so it need not be counted apart.
        seen.received =
            seen.admitted() + seen.rejected() + seen.cancelled + seen.queued + seen.offered;
        seen
    }

    pub(crate) fn lane_name(&self, lane: u32) -> Lane {
        self.lane(lane).name
    }
}
