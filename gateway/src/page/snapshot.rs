//! What is shown: the newest reading, and what it says beside those before it.
//!
//! | what | over |
//! | --- | --- |
//! | rates | the last [`PACE`] |
//! | quantiles, shares | the last [`WINDOW`] |

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::decisions::Decision;
use super::gate::Gate;
use super::histogram::Histogram;
use super::reading::Reading;
use super::refusals::{Counted, Refusals};

/// What rates are taken over.
pub const PACE: Duration = Duration::from_secs(3);
/// What quantiles and shares are taken over.
pub const WINDOW: Duration = Duration::from_secs(30);

/// Everything that is shown of a server at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// This program's version.
    pub version: &'static str,
    /// Time on the server's own clock, in milliseconds.
    pub at_ms: u64,
    /// What quantiles are taken over, in seconds.
    pub window_seconds: u64,
    /// The newest reading.
    #[serde(flatten)]
    pub reading: Reading,
    /// The first axis: how full is the device?
    pub gpu: Gpu,
    /// The second: how full is the gate?
    pub concurrency: Concurrency,
    /// The third: what do clients get?
    pub quality: Quality,
    /// Refusals by reason, the most frequent first.
    pub refusals: Vec<Refusals>,
    /// The last decisions, newest first.
    pub decisions: Vec<Decision>,
}

/// Saturation of the GPU: of several, the fullest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gpu {
    /// Shares in use, 0 to 1, by what they are of.
    pub shares: BTreeMap<String, f64>,
    /// Why nothing is known, if nothing is.
    pub unknown: Option<&'static str>,
}

/// Saturation of concurrency, over all gates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Concurrency {
    /// Requests in the engines.
    pub running: u64,
    /// As many as may be.
    pub running_limit: u64,
    /// The part whose first token has not come.
    pub waiting: u64,
    /// As many as may be.
    pub waiting_limit: u64,
    /// Requests in the gates' queues.
    pub queued: u64,
    /// As many as may be.
    pub queue_limit: u64,
    /// Requests that policies hold.
    pub held: u64,
    /// Some gate runs on limits that nobody set and no engine told.
    pub fallback: bool,
    /// Requests per second that arrived.
    pub received_per_second: f64,
    /// Requests per second that were admitted.
    pub admitted_per_second: f64,
    /// Requests per second that were refused.
    pub refused_per_second: f64,
}

/// Quality of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Answers per second that count: within their class's promise where a policy
    /// knows one, else any.
    pub goodput: f64,
    /// Share of requests that got one; `None` where there were none.
    pub attainment: Option<f64>,
    /// What the two count.
    pub counts: Counts,
    /// Seconds to the first token: median, 99 and 99.9 of a hundred.
    pub first_token: Option<[f64; 3]>,
    /// Seconds in the gate's queue: the same.
    pub queue_wait: Option<[f64; 3]>,
    /// Admissions out of the queue that it was taken of.
    pub queue_waits: u64,
}

/// What goodput counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Requests that were admitted: nothing is known of answers.
    #[default]
    Admitted,
    /// Requests that were answered.
    Answered,
    /// Answers within their class's promise.
    Promise,
}

/// Readings of the last while.
#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<(Duration, Reading)>);

impl History {
    /// Takes in the reading of the moment `now`, and tells what is shown then.
    pub fn observe(
        &mut self,
        now: Duration,
        reading: Reading,
        decisions: Vec<Decision>,
    ) -> Snapshot {
        self.0.push_back((now, reading));
        // One that is older stays, so that the window is a full one.
        while self
            .0
            .get(1)
            .is_some_and(|(at, _)| now.saturating_sub(*at) >= WINDOW)
        {
            self.0.pop_front();
        }
        let span = |time| Span::new(self.ago(now, time), self.ago(now, Duration::ZERO));
        snapshot(now, &span(PACE), &span(WINDOW), decisions)
    }

    /// The newest reading that is at least so old, or else the oldest.
    fn ago(&self, now: Duration, time: Duration) -> &(Duration, Reading) {
        let old = |(at, _): &&(Duration, Reading)| now.saturating_sub(*at) >= time;
        let found = self.0.iter().rev().find(old);
        found.unwrap_or(&self.0[0])
    }
}

/// Two readings, and the time between them.
struct Span<'r> {
    then: &'r Reading,
    now: &'r Reading,
    seconds: f64,
}

impl<'r> Span<'r> {
    fn new(then: &'r (Duration, Reading), now: &'r (Duration, Reading)) -> Self {
        Self {
            seconds: now.0.saturating_sub(then.0).as_secs_f64(),
            then: &then.1,
            now: &now.1,
        }
    }

    /// By how much a count of the gates grew. One that was started anew or that
    /// was not read before has not grown.
    fn grown(&self, count: impl Fn(&Gate) -> u64) -> u64 {
        let grown = self
            .gates()
            .map(|(then, now)| count(now).saturating_sub(count(then)));
        grown.fold(0, u64::saturating_add)
    }

    fn grown_front(&self, count: impl Fn(&super::front::Front) -> u64) -> u64 {
        let both = self.then.front.as_ref().zip(self.now.front.as_ref());
        both.map_or(0, |(then, now)| count(now).saturating_sub(count(then)))
    }

    fn gates(&self) -> impl Iterator<Item = (&Gate, &Gate)> {
        self.now.gates.iter().filter_map(|now| {
            let same = |then: &&Gate| then.worker == now.worker;
            Some((self.then.gates.iter().find(same)?, now))
        })
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

fn snapshot(now: Duration, pace: &Span, window: &Span, decisions: Vec<Decision>) -> Snapshot {
    Snapshot {
        version: env!("CARGO_PKG_VERSION"),
        at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        window_seconds: WINDOW.as_secs(),
        gpu: gpu(window.now),
        concurrency: concurrency(pace),
        quality: quality(pace, window),
        refusals: refusals(pace),
        reading: shown(window),
        decisions,
    }
}

/// The newest reading, with how long each class waited lately.
fn shown(window: &Span) -> Reading {
    let mut now = window.now.clone();
    for queue in now.front.iter_mut().flat_map(|front| &mut front.queues) {
        let before = window.then.front.iter().flat_map(|front| &front.queues);
        let before = before.clone().find(|before| before.model == queue.model);
        for class in &mut queue.classes {
            let before = before.iter().flat_map(|queue| &queue.classes);
            let before = before.clone().find(|before| before.name == class.name);
            let waits = before.map(|before| class.waits.since(&before.waits));
            class.wait = waits.and_then(|waits| waits.quantiles([0.5, 0.99, 0.999]));
        }
    }
    now
}

fn gpu(reading: &Reading) -> Gpu {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |of: &str, share: f64| {
        let most = shares.entry(of.to_owned()).or_insert(share);
        *most = most.max(share);
    };
    let policies = || reading.gates.iter().filter_map(|gate| gate.policy.as_ref());
    for policy in policies() {
        for (of, share) in &policy.gpu {
            add(of, *share);
        }
    }
    for worker in reading.front.iter().flat_map(|front| &front.workers) {
        if worker.blocks_total > 0 {
            add(
                "kv_blocks",
                worker.blocks as f64 / worker.blocks_total as f64,
            );
        }
    }
    let unknown = shares.is_empty().then(|| match policies().next() {
        Some(_) => "the engine has not told its state lately",
        None => "a worker reads the engine's state once it has a --policy; with --policy-mode observe that changes nothing else",
    });
    Gpu { shares, unknown }
}

fn concurrency(pace: &Span) -> Concurrency {
    let mut sum = Concurrency::default();
    for gate in &pace.now.gates {
        let of_all = |limit: u64| limit.saturating_mul(gate.ranks);
        sum.running += gate.total(|lane| lane.running);
        sum.waiting += gate.total(|lane| lane.waiting);
        sum.queued += gate.total(|lane| lane.queued);
        sum.running_limit += of_all(gate.limits.running);
        sum.waiting_limit += of_all(gate.limits.waiting);
        sum.queue_limit += of_all(gate.limits.queued);
        sum.fallback |= gate.fallback;
        let classes = gate.policy.iter().flat_map(|policy| &policy.classes);
        sum.held += classes.map(|class| class.held).sum::<u64>();
    }
    let queues = pace.now.front.iter().flat_map(|front| &front.queues);
    let classes = queues.flat_map(|queue| &queue.classes);
    sum.held += classes.map(|class| class.held).sum::<u64>();
    let admitted = pace.grown(|gate| gate.total(|lane| lane.direct + lane.from_queue));
    sum.admitted_per_second = pace.per_second(admitted);
    // What clients of a frontend see is what counts there: its workers may refuse
    // what another then takes.
    let (received, refused) = match pace.now.front {
        Some(_) => (
            pace.grown_front(|front| front.outcomes.values().sum()),
            pace.grown_front(|front| front.outcome("rejected")),
        ),
        None => {
            let sent_away = |gate: &Gate| rejected(gate) + carried_out(gate);
            (
                pace.grown(|gate| gate.total(|lane| lane.received) + carried_out(gate)),
                pace.grown(sent_away),
            )
        }
    };
    sum.received_per_second = pace.per_second(received);
    sum.refused_per_second = pace.per_second(refused);
    sum
}

fn rejected(gate: &Gate) -> u64 {
    gate.total(|lane| lane.rejected_rank + lane.rejected_worker)
}

/// Refusals of its policy that reached clients.
fn carried_out(gate: &Gate) -> u64 {
    let policy = gate.policy.as_ref().filter(|policy| !policy.observes);
    let classes = policy.into_iter().flat_map(|policy| &policy.classes);
    classes.flat_map(|class| class.refused.values()).sum()
}

fn quality(pace: &Span, window: &Span) -> Quality {
    let merged = |of: &dyn Fn(&Gate) -> &Histogram| {
        let each = window.gates().map(|(then, now)| of(now).since(of(then)));
        each.fold(Histogram::default(), |sum, one| sum.and(&one))
    };
    let waits = merged(&|gate| &gate.queue_wait);
    let front = window.then.front.as_ref().zip(window.now.front.as_ref());
    let first_token = front.map(|(then, now)| now.first_token.since(&then.first_token));
    let mut quality = Quality {
        first_token: first_token.and_then(|first| first.quantiles([0.5, 0.99, 0.999])),
        queue_wait: waits.quantiles([0.5, 0.99, 0.999]),
        queue_waits: super::named::whole(waits.count()),
        ..Quality::default()
    };
    if window.now.front.is_some() {
        quality.counts = Counts::Answered;
        quality.goodput = pace.per_second(pace.grown_front(|front| front.outcome("ok")));
        let served = window.grown_front(|front| front.outcome("ok"));
        // Neither clients that left nor mistakes of theirs count against it.
        let failed = ["rejected", "unavailable", "worker_error"];
        let failed = window.grown_front(|front| failed.map(|how| front.outcome(how)).iter().sum());
        quality.attainment = share(served, failed);
        return quality;
    }
    let policy = window
        .now
        .gates
        .iter()
        .find_map(|gate| gate.policy.as_ref());
    if let Some(policy) = policy {
        quality.counts = Counts::Promise;
        quality.goodput = policy.classes.iter().map(|class| class.goodput).sum();
        // Each class's share is of so many answers.
        let told = policy.classes.iter().filter_map(|class| {
            let share = class.attainment.filter(|share| *share > 0.0)?;
            Some(class.goodput / share)
        });
        let answers: f64 = told.sum();
        let known = policy
            .classes
            .iter()
            .any(|class| class.attainment.is_some());
        let kept = if answers > 0.0 {
            quality.goodput / answers
        } else {
            0.0
        };
        quality.attainment = known.then_some(kept);
        let most = |at: usize| {
            let told = policy
                .classes
                .iter()
                .filter_map(|class| class.first_token[at]);
            told.reduce(f64::max)
        };
        let slowest = [most(0), most(1), most(2)];
        if let [Some(p50), Some(p99), Some(p999)] = slowest {
            quality.first_token = Some([p50, p99, p999]);
        }
        return quality;
    }
    let admitted = |gate: &Gate| gate.total(|lane| lane.direct + lane.from_queue);
    quality.goodput = pace.per_second(pace.grown(admitted));
    quality.attainment = share(window.grown(admitted), window.grown(rejected));
    quality
}

fn share(of: u64, others: u64) -> Option<f64> {
    let all = of + others;
    (all > 0).then(|| of as f64 / all as f64)
}

fn refusals(pace: &Span) -> Vec<Refusals> {
    let fronts = pace.then.front.as_ref().zip(pace.now.front.as_ref());
    let mut lately = Counted::default();
    for (then, now) in pace.gates() {
        lately.add(&Counted::of_gate(now).since(&Counted::of_gate(then)));
    }
    if let Some((then, now)) = fronts {
        lately.add(&Counted::of_front(now).since(&Counted::of_front(then)));
    }
    let mut all = Counted::default();
    let gates = pace.now.gates.iter().map(Counted::of_gate);
    let front = pace.now.front.iter().map(Counted::of_front);
    gates.chain(front).for_each(|one| all.add(&one));
    all.shown(|reason| pace.per_second(lately.count(reason)))
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
