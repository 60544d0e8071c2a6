//! One load played, watched from both sides, and the accounts compared.

use std::fmt;
use std::time::Duration;

use tidegate::{LaneSnapshot, Snapshot};
use tidegate_gateway::load::{Client, Load, Planned, Tally, play};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use super::stack::{Stack, limits, simulated};

/// The engine's ranks, and what the gate lets each do.
pub const RANKS: u32 = 2;
const RUNNING: u32 = 4;
const WAITING: u32 = 2;
const QUEUED: u32 = 2;

/// How often the gate is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// What all requests together may take beyond their schedule: enough for the
/// longest answer on a machine that has much else to do.
const AFTERWARDS: Duration = Duration::from_secs(120);

/// What became of a load.
pub struct Replay {
    pub requests: u64,
    pub tally: Tally,
    /// The gate when all had ended, before the one more request of the idle check.
    pub gate: Snapshot,
    /// Requests that the engine got, ran to their end, and saw leave.
    engine: (u64, u64, u64),
    peak_running: u64,
    peak_queued: u64,
    glances: u64,
}

impl Replay {
    /// Plays it, and checks on the way that no limit is exceeded and at the end
    /// that nothing is left.
    pub async fn run(speed: f64, requests: Vec<Planned>) -> Self {
        let stack = Stack::start(simulated(RANKS, RUNNING, speed), |config| {
            config.settings = limits(RUNNING, WAITING, QUEUED);
        })
        .await;
        let mut seen = Self {
            requests: requests.len() as u64,
            tally: Tally::default(),
            gate: stack.snapshot(),
            engine: (0, 0, 0),
            peak_running: 0,
            peak_queued: 0,
            glances: 0,
        };
        let last = requests.last().map_or(Duration::ZERO, |last| last.at);
        let targets = [stack.worker.url().parse().expect("a target")];
        let (client, load) = (Client::new("sim"), Load::default());
        let stop = CancellationToken::new();
        let playing = play(requests.into_iter(), &targets, &client, &load, &stop);
        let played = timeout(last + AFTERWARDS, async {
            tokio::pin!(playing);
            let mut clock = interval(GLANCE);
            loop {
                tokio::select! {
                    () = &mut playing => break,
                    _ = clock.tick() => seen.glance(&stack.snapshot()),
                }
            }
        });
        let ended = played.await;
        seen.tally = load.tally();
        assert!(ended.is_ok(), "not all have ended: {seen}");
        stack.holds(0, 0, 0).await;
        seen.engine = stack.engine_settled().await;
        seen.gate = stack.snapshot();
        stack.idle().await;
        seen
    }

    fn glance(&mut self, now: &Snapshot) {
        let (ranks, worker) = (u64::from(RANKS), now.worker);
        assert!(worker.running <= ranks * u64::from(RUNNING), "{now:?}");
        assert!(worker.waiting <= ranks * u64::from(WAITING), "{now:?}");
        assert!(worker.queued <= ranks * u64::from(QUEUED), "{now:?}");
        for lane in &now.lanes {
            assert!(lane.conserves(), "{lane:?}");
        }
        self.peak_running = self.peak_running.max(worker.running);
        self.peak_queued = self.peak_queued.max(worker.queued);
        self.glances += 1;
    }

    /// Every request ended, and clients, gate and engine tell the same story.
    pub fn check(&self) {
        let (tally, gate) = (&self.tally, &self.gate);
        assert_eq!(tally.sent, self.requests, "some were never sent: {self}");
        assert_eq!(tally.in_flight(), 0, "some never ended: {self}");
        assert_eq!(tally.failures(), 0, "{self}");

        let received = gate.total(|lane| lane.received);
        let admitted = gate.total(|lane| lane.admitted());
        let rejected = gate.total(|lane| lane.rejected());
        let cancelled = gate.total(|lane| lane.cancelled);
        assert_eq!(received, admitted + rejected + cancelled, "{self}");

        // One who leaves may do so before its request arrives, or after the gate
        // has decided: between these bounds it can have counted as anything.
        let left = tally.left;
        let between = |count: u64, least: u64| (least..=least + left).contains(&count);
        assert!(between(received, tally.sent - left), "received: {self}");
        assert!(between(admitted, tally.ok), "admitted: {self}");
        assert!(between(rejected, tally.refusals()), "rejected: {self}");
        assert!(cancelled <= left, "cancelled: {self}");

        let (submitted, finished, _) = self.engine;
        assert!(between(finished, tally.ok), "engine: {self}");
        assert!(submitted <= admitted, "engine: {self}");
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |counter: fn(&LaneSnapshot) -> u64| self.gate.total(counter);
        let millis = |quantile| {
            let latency = self.tally.first_token(quantile).unwrap_or_default();
            latency.as_secs_f64() * 1000.0
        };
        write!(
            f,
            "{} requests: {} | gate: received {}, at once {}, via queue {}, refused {} by rank \
             and {} by worker, cancelled {} | engine: got {}, finished {}, left {} | peaks: \
             running {}, queued {} (of {} glances) | first token ms: p50 {:.1}, p99 {:.1}",
            self.requests,
            self.tally.line(),
            total(|lane| lane.received),
            total(|lane| lane.admitted_direct),
            total(|lane| lane.admitted_queue),
            total(|lane| lane.rejected_rank),
            total(|lane| lane.rejected_worker),
            total(|lane| lane.cancelled),
            self.engine.0,
            self.engine.1,
            self.engine.2,
            self.peak_running,
            self.peak_queued,
            self.glances,
            millis(0.5),
            millis(0.99),
        )
    }
}
