//! The sequential gate: the rules of admission as plain single-threaded code.
//!
//! This is the specification. The concurrent gate must answer as this one
//! does; property tests and fuzzing hold them against each other, and the
//! benchmarks put this one behind a mutex to stand for the usual design.
//!
//! 1. A ranked request *fits* if its rank and the worker have room in both
//!    engine limits; an unranked one needs only the worker's room.
//! 2. A newcomer enters at once if it fits and its own lane's queue is empty.
//! 3. Otherwise it queues, if its rank (when it has one) and the worker have
//!    queue room; otherwise it is refused.
//! 4. Whenever capacity may have freed, the oldest queued request that fits is
//!    *offered* its capacity, over all lanes, until none fits. Within a lane
//!    the order is first in, first out; a blocked lane holds up no other.
//! 5. Waiting ends at the first token or at the end, once; running at the end.
//! 6. A cancelled request frees its queue place, or the capacity it was
//!    offered, at that moment.
//! 7. Nothing admitted is ever revoked and nothing queued evicted: where a
//!    limit shrinks, nothing enters until the count is below it.
//!
//! ```
//! use tidegate::spec::{Answer, SpecGate};
//! use tidegate::Settings;
//!
//! let mut gate = SpecGate::new(Settings {
//!     engine_request_limit: Some(1),
//!     request_queue_limit: Some(1),
//!     ..Settings::default()
//! })?;
//! let Ok(Answer::Admitted(lane)) = gate.request(None) else { panic!("it fits") };
//! let Ok(Answer::Queued(ticket)) = gate.request(None) else { panic!("the queue has room") };
//! assert!(gate.request(None).is_err());
//! gate.release(lane, true);
//! assert!(gate.take(ticket), "the release offered its capacity to the oldest");
//! # Ok::<(), tidegate::LimitError>(())
//! ```

use std::collections::VecDeque;

use crate::error::{Counts, Lane, Limit, Overload, Scope};
use crate::limits::{EngineReport, LimitError, Limits, ReportError, Settings};
use crate::snapshot::{LaneSnapshot, Snapshot};

/// Index of a lane: 0 is *unspecified*, the reported ranks follow in ascending order.
pub type LaneIndex = usize;

const UNSPECIFIED: LaneIndex = 0;

/// A queued request. Lower numbers are older, over all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    lane: LaneIndex,
    age: u64,
}

impl Number {
    /// The lane that the request queued in.
    pub fn lane(&self) -> LaneIndex {
        self.lane
    }
}

/// What becomes of a request that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It entered, and is accounted in this lane.
    Admitted(LaneIndex),
    /// It waits for its turn.
    Queued(Number),
}

/// The sequential gate. See the [module](self) for the rules.
#[derive(Clone, Debug)]
pub struct SpecGate {
    settings: Settings,
    max_num_seqs: Option<u32>,
    limits: Limits,
    lanes: Vec<LaneState>,
    worker: Counts,
    next_age: u64,
    offers: Vec<Number>,
}

/// A lane's counts, and the ages of its queued requests, oldest first.
#[derive(Clone, Debug)]
struct LaneState {
    seen: LaneSnapshot,
    queue: VecDeque<u64>,
}

impl SpecGate {
    /// A gate with these explicit settings, whose engine has not reported yet.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(settings: Settings) -> Result<Self, LimitError> {
        Ok(SpecGate {
            settings,
            max_num_seqs: None,
            limits: settings.resolve(None)?,
            lanes: vec![LaneState::new(Lane::Unspecified)],
            worker: Counts::default(),
            next_age: 0,
            offers: Vec::new(),
        })
    }

    /// Enters now or says why not; never queues.
    ///
    /// # Errors
    /// The engine limit that stands in the way.
    pub fn try_admit(&mut self, rank: Option<u32>) -> Result<LaneIndex, Overload> {
        let lane = self.lane(rank);
        self.lanes[lane].seen.received += 1;
        match self.obstacle(lane) {
            None => Ok(self.admit(lane)),
            Some(obstacle) => Err(self.refuse(lane, obstacle)),
        }
    }

    /// Enters, counting the request only if it does.
    pub fn enter_if_room(&mut self, rank: Option<u32>) -> Option<LaneIndex> {
        let lane = self.lane(rank);
        self.obstacle(lane).is_none().then(|| {
            self.lanes[lane].seen.received += 1;
            self.admit(lane)
        })
    }

    /// Enters, queues or is refused: rules 2 and 3.
    ///
    /// # Errors
    /// The queue limit that is reached, or with a queue limit of 0 the engine limit.
    pub fn request(&mut self, rank: Option<u32>) -> Result<Answer, Overload> {
        let lane = self.lane(rank);
        self.lanes[lane].seen.received += 1;
        let Some(obstacle) = self.obstacle(lane) else {
            return Ok(Answer::Admitted(self.admit(lane)));
        };
        if let Some(full) = self.queue_full(lane) {
            let no_queue = self.limits.request_queue_limit == 0;
            return Err(self.refuse(lane, if no_queue { obstacle } else { full }));
        }
        let age = self.next_age;
        self.next_age += 1;
        self.lanes[lane].queue.push_back(age);
        self.lanes[lane].seen.queued += 1;
        self.worker.queued += 1;
        Ok(Answer::Queued(Number { lane, age }))
    }

    /// Counts a request whose client had gone before it could arrive.
    pub fn cancelled_on_arrival(&mut self, rank: Option<u32>) {
        let lane = self.lane(rank);
        self.lanes[lane].seen.received += 1;
        self.lanes[lane].seen.cancelled += 1;
    }

    /// Whether the request still waits for an offer.
    pub fn is_queued(&self, number: Number) -> bool {
        self.lanes[number.lane]
            .queue
            .binary_search(&number.age)
            .is_ok()
    }

    /// Takes an offer up: the request is admitted. False while it is queued.
    pub fn take(&mut self, number: Number) -> bool {
        if self.is_queued(number) {
            return false;
        }
        let seen = &mut self.lanes[number.lane].seen;
        seen.offered -= 1;
        seen.admitted_queue += 1;
        true
    }

    /// Withdraws a request that was queued or offered: rule 6.
    pub fn cancel(&mut self, number: Number) {
        let lane = &mut self.lanes[number.lane];
        lane.seen.cancelled += 1;
        match lane.queue.binary_search(&number.age) {
            Ok(place) => {
                lane.queue.remove(place);
                lane.seen.queued -= 1;
                self.worker.queued -= 1;
                // Nothing fits better for it: the others of its lane wait for
                // the same capacity as it did.
            }
            Err(_) => {
                lane.seen.offered -= 1;
                self.release(number.lane, true);
            }
        }
    }

    /// An admitted request of this lane got its first token; call once for each.
    pub fn first_token(&mut self, lane: LaneIndex) {
        self.lanes[lane].seen.waiting -= 1;
        self.worker.waiting -= 1;
        self.hand_on();
    }

    /// An admitted request of this lane ended, `waiting` if its first token had not come.
    pub fn release(&mut self, lane: LaneIndex, waiting: bool) {
        self.lanes[lane].seen.running -= 1;
        self.worker.running -= 1;
        if waiting {
            self.lanes[lane].seen.waiting -= 1;
            self.worker.waiting -= 1;
        }
        self.hand_on();
    }

    /// The engine tells its ranks and its size. Limits that nobody set follow it.
    ///
    /// # Errors
    /// An unusable report, or one with other ranks than the first; nothing changes.
    pub fn report_engine(&mut self, report: &EngineReport) -> Result<Limits, ReportError> {
        let ranks = report.sorted_ranks()?;
        let known = self.ranks();
        if !known.is_empty() && known != ranks {
            return Err(ReportError::OtherRanks(known));
        }
        // A report that does not say keeps what an earlier one said.
        let max_num_seqs = report.max_num_seqs.or(self.max_num_seqs);
        let limits = self.settings.resolve_for(ranks.len(), max_num_seqs);
        self.limits = limits.map_err(ReportError::Limit)?;
        self.max_num_seqs = max_num_seqs;
        if known.is_empty() {
            self.lanes
                .extend(ranks.into_iter().map(|id| LaneState::new(Lane::Rank(id))));
        }
        self.hand_on();
        Ok(self.limits)
    }

    /// Sets limits at run time; `None` leaves one as it is.
    ///
    /// # Errors
    /// A limit out of range; nothing changes.
    pub fn set_limits(&mut self, settings: Settings) -> Result<Limits, LimitError> {
        let settings = settings.or(self.settings);
        self.limits = settings.resolve_for(self.lanes.len() - 1, self.max_num_seqs)?;
        self.settings = settings;
        self.hand_on();
        Ok(self.limits)
    }

    /// The offers made since the last call, in the order in which they were made.
    pub fn take_offers(&mut self) -> Vec<Number> {
        std::mem::take(&mut self.offers)
    }

    /// Counts and limits of every lane and of the worker.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            limits: self.limits,
            worker: self.worker,
            lanes: self.lanes.iter().map(|lane| lane.seen).collect(),
        }
    }

    /// The lane at this index, as callers and metrics name it.
    pub fn lane_at(&self, lane: LaneIndex) -> Lane {
        self.lanes[lane].seen.lane
    }

    /// Rule 4.
    fn hand_on(&mut self) {
        while let Some(number) = self.oldest_that_fits() {
            let lane = &mut self.lanes[number.lane];
            lane.queue.pop_front();
            lane.seen.queued -= 1;
            lane.seen.offered += 1;
            self.worker.queued -= 1;
            self.reserve(number.lane);
            self.offers.push(number);
        }
    }

    fn oldest_that_fits(&self) -> Option<Number> {
        let heads = self.lanes.iter().enumerate();
        heads
            .filter_map(|(lane, state)| {
                Some(Number {
                    lane,
                    age: *state.queue.front()?,
                })
            })
            .filter(|head| self.lacks(head.lane).is_none())
            .min_by_key(|head| head.age)
    }

    fn admit(&mut self, lane: LaneIndex) -> LaneIndex {
        self.lanes[lane].seen.admitted_direct += 1;
        self.reserve(lane);
        lane
    }

    fn reserve(&mut self, lane: LaneIndex) {
        for counts in [&mut self.lanes[lane].seen.running, &mut self.worker.running] {
            *counts += 1;
        }
        for counts in [&mut self.lanes[lane].seen.waiting, &mut self.worker.waiting] {
            *counts += 1;
        }
    }

    /// What keeps a newcomer of this lane from entering at once: rule 2.
    fn obstacle(&self, lane: LaneIndex) -> Option<Full> {
        // A queued request of this lane lacks something, or it would have been
        // offered it; the newcomer lacks the same.
        debug_assert!(self.lanes[lane].queue.is_empty() || self.lacks(lane).is_some());
        self.lacks(lane)
    }

    /// The engine limit that this lane's next request lacks, its rank's own first: rule 1.
    fn lacks(&self, lane: LaneIndex) -> Option<Full> {
        self.full(lane, &[Limit::EngineRequest, Limit::EngineRequestWaiting])
    }

    /// The queue limit that leaves no room for this lane, its rank's own first: rule 3.
    fn queue_full(&self, lane: LaneIndex) -> Option<Full> {
        self.full(lane, &[Limit::RequestQueue])
    }

    fn full(&self, lane: LaneIndex, limits: &[Limit]) -> Option<Full> {
        let ranks = (self.lanes.len() as u64 - 1).max(1);
        let own = (lane != UNSPECIFIED).then(|| (false, 1, self.lanes[lane].seen.counts()));
        let places = own.into_iter().chain([(true, ranks, self.worker)]);
        places
            .flat_map(|(of_worker, times, counts)| {
                limits.iter().map(move |&limit| Full {
                    limit,
                    of_worker,
                    value: times * u64::from(self.limits.get(limit)),
                    counts,
                })
            })
            .find(|full| full.used() >= full.value)
    }

    fn refuse(&mut self, lane: LaneIndex, full: Full) -> Overload {
        let scope = self.scope(lane);
        let seen = &mut self.lanes[lane].seen;
        match scope {
            Scope::Rank(_) => seen.rejected_rank += 1,
            Scope::Worker => seen.rejected_worker += 1,
        }
        let Full {
            limit,
            of_worker,
            value,
            counts,
        } = full;
        Overload {
            lane: seen.lane,
            scope,
            limit,
            of_worker,
            value,
            counts,
        }
    }

    /// How far a refusal of this lane reaches: the whole worker if the request
    /// is unranked, or if no request of any lane could enter or queue. An
    /// unranked request can do either whenever any other can.
    fn scope(&self, lane: LaneIndex) -> Scope {
        let somebody_could =
            self.lacks(UNSPECIFIED).is_none() || self.queue_full(UNSPECIFIED).is_none();
        match self.lanes[lane].seen.lane {
            Lane::Rank(id) if somebody_could => Scope::Rank(id),
            _ => Scope::Worker,
        }
    }

    fn lane(&self, rank: Option<u32>) -> LaneIndex {
        let named = rank.map(Lane::Rank);
        let found = named.and_then(|named| self.lanes.iter().position(|l| l.seen.lane == named));
        found.unwrap_or(UNSPECIFIED)
    }

    fn ranks(&self) -> Vec<u32> {
        let ids = self.lanes.iter().filter_map(|lane| match lane.seen.lane {
            Lane::Rank(id) => Some(id),
            Lane::Unspecified => None,
        });
        ids.collect()
    }
}

/// A limit that is reached, and where.
#[derive(Clone, Copy)]
struct Full {
    limit: Limit,
    of_worker: bool,
    value: u64,
    counts: Counts,
}

impl Full {
    fn used(&self) -> u64 {
        match self.limit {
            Limit::EngineRequest => self.counts.running,
            Limit::EngineRequestWaiting => self.counts.waiting,
            Limit::RequestQueue => self.counts.queued,
        }
    }
}

impl LaneState {
    fn new(lane: Lane) -> Self {
        LaneState {
            seen: LaneSnapshot::new(lane),
            queue: VecDeque::new(),
        }
    }
}
