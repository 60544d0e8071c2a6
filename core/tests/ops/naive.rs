//! The rules once more, as naively as they can be put: one list of requests in
//! the order of their arrival, and every count taken by counting.

use std::collections::BTreeMap;

use tidegate::{
    Counts, EngineReport, Lane, LaneSnapshot, Limit, Limits, Overload, Scope, Settings, Snapshot,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Queued,
    Offered,
    Admitted { waiting: bool },
}

#[derive(Debug)]
struct Request {
    id: usize,
    lane: Lane,
    stage: Stage,
}

/// What happened to the requests of a lane so far.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    received: u64,
    direct: u64,
    from_queue: u64,
    refused_rank: u64,
    refused_worker: u64,
    cancelled: u64,
}

#[derive(Debug)]
pub enum Answer {
    Admitted(usize),
    Queued(usize),
    Refused(Overload),
}

#[derive(Debug)]
pub struct Naive {
    settings: Settings,
    limits: Limits,
    max_num_seqs: Option<u32>,
    ranks: Vec<u32>,
    requests: Vec<Request>,
    past: BTreeMap<Lane, Past>,
    next_id: usize,
}

impl Naive {
    /// With settings that are in range.
    pub fn new(settings: Settings) -> Self {
        Naive {
            settings,
            limits: resolved(settings, None).expect("in range"),
            max_num_seqs: None,
            ranks: Vec::new(),
            requests: Vec::new(),
            past: BTreeMap::new(),
            next_id: 0,
        }
    }

    pub fn try_admit(&mut self, rank: Option<u32>) -> Answer {
        let lane = self.lane(rank);
        self.past(lane).received += 1;
        if self.could_enter(lane) {
            self.past(lane).direct += 1;
            return Answer::Admitted(self.add(lane, Stage::Admitted { waiting: true }));
        }
        self.refuse(lane, &[Limit::EngineRequest, Limit::EngineRequestWaiting])
    }

    pub fn request(&mut self, rank: Option<u32>) -> Answer {
        let lane = self.lane(rank);
        self.past(lane).received += 1;
        if self.could_enter(lane) {
            self.past(lane).direct += 1;
            Answer::Admitted(self.add(lane, Stage::Admitted { waiting: true }))
        } else if self.could_queue(lane) {
            Answer::Queued(self.add(lane, Stage::Queued))
        } else if self.limits.request_queue_limit == 0 {
            self.refuse(lane, &[Limit::EngineRequest, Limit::EngineRequestWaiting])
        } else {
            self.refuse(lane, &[Limit::RequestQueue])
        }
    }

    pub fn enter_if_room(&mut self, rank: Option<u32>) -> Option<usize> {
        let lane = self.lane(rank);
        self.could_enter(lane).then(|| {
            self.past(lane).received += 1;
            self.past(lane).direct += 1;
            self.add(lane, Stage::Admitted { waiting: true })
        })
    }

    pub fn gone_on_arrival(&mut self, rank: Option<u32>) {
        let lane = self.lane(rank);
        self.past(lane).received += 1;
        self.past(lane).cancelled += 1;
    }

    pub fn take(&mut self, id: usize) -> bool {
        let request = self.find(id);
        if request.stage == Stage::Queued {
            return false;
        }
        assert_eq!(request.stage, Stage::Offered);
        request.stage = Stage::Admitted { waiting: true };
        let lane = request.lane;
        self.past(lane).from_queue += 1;
        true
    }

    pub fn cancel(&mut self, id: usize) {
        let lane = self.find(id).lane;
        self.past(lane).cancelled += 1;
        self.leave(id);
    }

    pub fn first_token(&mut self, id: usize) {
        self.find(id).stage = Stage::Admitted { waiting: false };
        self.hand_on();
    }

    /// It ended, or left before it was admitted.
    pub fn leave(&mut self, id: usize) {
        self.requests.retain(|request| request.id != id);
        self.hand_on();
    }

    /// Whether the limits were in range.
    pub fn set_limits(&mut self, settings: Settings) -> bool {
        let old = self.settings;
        let new = Settings {
            engine_request_limit: settings.engine_request_limit.or(old.engine_request_limit),
            engine_request_waiting_limit: settings
                .engine_request_waiting_limit
                .or(old.engine_request_waiting_limit),
            request_queue_limit: settings.request_queue_limit.or(old.request_queue_limit),
        };
        let Some(limits) = resolved(new, self.max_num_seqs) else {
            return false;
        };
        (self.settings, self.limits) = (new, limits);
        self.hand_on();
        true
    }

    /// Whether the report was usable and named the ranks that are known.
    pub fn report(&mut self, report: &EngineReport) -> bool {
        let mut ranks = report.ranks.clone();
        ranks.sort_unstable();
        ranks.dedup();
        if ranks.is_empty() || ranks.len() != report.ranks.len() {
            return false;
        }
        if !self.ranks.is_empty() && self.ranks != ranks {
            return false;
        }
        let max_num_seqs = report.max_num_seqs.or(self.max_num_seqs);
        let Some(limits) = resolved(self.settings, max_num_seqs) else {
            return false;
        };
        self.limits = limits;
        self.max_num_seqs = max_num_seqs;
        self.ranks = ranks;
        self.hand_on();
        true
    }

    pub fn snapshot(&self) -> Snapshot {
        let lanes = self.lanes().into_iter().map(|lane| {
            let past = self.past.get(&lane).copied().unwrap_or_default();
            let held = self.held(|request| request.lane == lane);
            LaneSnapshot {
                lane,
                running: held.running,
                waiting: held.waiting,
                queued: held.queued,
                offered: self.count(|r| r.lane == lane && r.stage == Stage::Offered),
                received: past.received,
                admitted_direct: past.direct,
                admitted_queue: past.from_queue,
                rejected_rank: past.refused_rank,
                rejected_worker: past.refused_worker,
                cancelled: past.cancelled,
            }
        });
        Snapshot {
            limits: self.limits,
            worker: self.held(|_| true),
            lanes: lanes.collect(),
        }
    }

    /// The oldest queued request that fits is offered its capacity, then the
    /// next, until none fits.
    fn hand_on(&mut self) {
        let fits = |naive: &Self, request: &Request| {
            request.stage == Stage::Queued && naive.fits(request.lane)
        };
        while let Some(oldest) = self.requests.iter().position(|r| fits(self, r)) {
            self.requests[oldest].stage = Stage::Offered;
        }
    }

    fn fits(&self, lane: Lane) -> bool {
        let at = [Limit::EngineRequest, Limit::EngineRequestWaiting];
        at.iter().all(|limit| self.room(lane, *limit))
    }

    fn could_enter(&self, lane: Lane) -> bool {
        let waits = |r: &Request| r.lane == lane && r.stage == Stage::Queued;
        self.fits(lane) && !self.requests.iter().any(waits)
    }

    fn could_queue(&self, lane: Lane) -> bool {
        self.room(lane, Limit::RequestQueue)
    }

    fn room(&self, lane: Lane, limit: Limit) -> bool {
        self.own_full(lane, limit)
            .or_else(|| self.worker_full(limit))
            .is_none()
    }

    /// If the rank's own limit is reached: its value and the rank's counts.
    fn own_full(&self, lane: Lane, limit: Limit) -> Option<(bool, u64, Counts)> {
        let (value, own) = (
            self.per_rank(limit),
            self.held(|request| request.lane == lane),
        );
        (lane != Lane::Unspecified && used(own, limit) >= value).then_some((false, value, own))
    }

    /// If the worker's limit is reached: its value and the worker's counts.
    fn worker_full(&self, limit: Limit) -> Option<(bool, u64, Counts)> {
        let all = self.held(|_| true);
        let value = self.per_rank(limit) * self.ranks.len().max(1) as u64;
        (used(all, limit) >= value).then_some((true, value, all))
    }

    fn per_rank(&self, limit: Limit) -> u64 {
        u64::from(match limit {
            Limit::EngineRequest => self.limits.engine_request_limit,
            Limit::EngineRequestWaiting => self.limits.engine_request_waiting_limit,
            Limit::RequestQueue => self.limits.request_queue_limit,
        })
    }

    fn refuse(&mut self, lane: Lane, limits: &[Limit]) -> Answer {
        let nobody = self
            .lanes()
            .into_iter()
            .all(|lane| !self.could_enter(lane) && !self.could_queue(lane));
        let scope = match lane {
            Lane::Rank(id) if !nobody => Scope::Rank(id),
            _ => Scope::Worker,
        };
        let own = |limit: &Limit| Some((*limit, self.own_full(lane, *limit)?));
        let worker = |limit: &Limit| Some((*limit, self.worker_full(*limit)?));
        let (limit, (of_worker, value, counts)) = limits
            .iter()
            .find_map(own)
            .or_else(|| limits.iter().find_map(worker))
            .expect("a refusal has a reason");
        match scope {
            Scope::Rank(_) => self.past(lane).refused_rank += 1,
            Scope::Worker => self.past(lane).refused_worker += 1,
        }
        Answer::Refused(Overload {
            lane,
            scope,
            limit,
            of_worker,
            value,
            counts,
        })
    }

    fn held(&self, whose: impl Fn(&Request) -> bool) -> Counts {
        let count = |stages: &[Stage]| self.count(|r| whose(r) && stages.contains(&r.stage));
        let waiting = [Stage::Offered, Stage::Admitted { waiting: true }];
        Counts {
            running: count(&waiting) + count(&[Stage::Admitted { waiting: false }]),
            waiting: count(&waiting),
            queued: count(&[Stage::Queued]),
        }
    }

    fn count(&self, which: impl Fn(&Request) -> bool) -> u64 {
        self.requests.iter().filter(|r| which(r)).count() as u64
    }

    fn add(&mut self, lane: Lane, stage: Stage) -> usize {
        let id = self.next_id;
        self.next_id += 1;
        self.requests.push(Request { id, lane, stage });
        id
    }

    fn find(&mut self, id: usize) -> &mut Request {
        let found = self.requests.iter_mut().find(|r| r.id == id);
        found.expect("the request is here")
    }

    fn lane(&self, rank: Option<u32>) -> Lane {
        match rank {
            Some(id) if self.ranks.contains(&id) => Lane::Rank(id),
            _ => Lane::Unspecified,
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        let ranks = self.ranks.iter().copied().map(Lane::Rank);
        std::iter::once(Lane::Unspecified).chain(ranks).collect()
    }

    fn past(&mut self, lane: Lane) -> &mut Past {
        self.past.entry(lane).or_default()
    }
}

fn resolved(settings: Settings, max_num_seqs: Option<u32>) -> Option<Limits> {
    let r = settings
        .engine_request_limit
        .or(max_num_seqs)
        .unwrap_or(10_000);
    let w = settings
        .engine_request_waiting_limit
        .or(max_num_seqs)
        .unwrap_or(10_000);
    let default_q = max_num_seqs.map_or(20_000, |n| n.saturating_mul(2));
    let q = settings.request_queue_limit.unwrap_or(default_q);
    let engine = 1..=12_287;
    let size = max_num_seqs != Some(0);
    let usable = size && engine.contains(&r) && engine.contains(&w) && q <= 131_071;
    usable.then_some(Limits {
        engine_request_limit: r,
        engine_request_waiting_limit: w,
        request_queue_limit: q,
    })
}

fn used(counts: Counts, limit: Limit) -> u64 {
    match limit {
        Limit::EngineRequest => counts.running,
        Limit::EngineRequestWaiting => counts.waiting,
        Limit::RequestQueue => counts.queued,
    }
}
