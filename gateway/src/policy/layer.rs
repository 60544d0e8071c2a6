//! The desk behind its lock.
//!
//! Nothing is done under the lock but deciding: whoever is told something is told
//! after it is let go, since what they do then may come back here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{Gate, OwnedPermit, Settings as GateSettings};
use tidegate_policy::class::ClassId;
use tidegate_policy::desk::{Alone, Desk, Entry, Moves, Outcome};
use tidegate_policy::judge::EngineSize;
use tidegate_policy::published::{Published, Reading};
use tidegate_policy::reason::Reason;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tracing::warn;

use super::inside::Inside;

/// The policy of one worker.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(super) gate: Gate,
    started: Instant,
    /// The engine's state as last sampled: read without a lock.
    pub(super) state: Published,
    desk: Mutex<Counter>,
    /// Something happened that may let somebody in.
    pub(super) happened: Notify,
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) desk: Desk<Waiter>,
    size: Size,
    /// The engine request limit that the gate has from here.
    limit: Option<u32>,
}

/// The limits that were set or reported, before the policy moves them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The engine request limit of each rank.
    pub(crate) limit: u32,
    /// How many ranks it has, at least 1.
    pub(crate) ranks: u32,
    /// The batch of each rank; the limit where the engine does not tell.
    pub(crate) batch: u32,
}

/// Whoever waits for an answer of the desk.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) rank: Option<u32>,
    pub(super) class: ClassId,
    pub(super) tell: oneshot::Sender<Told>,
}

/// The desk's answer.
#[derive(Debug)]
pub(super) enum Told {
    /// It is in.
    In(OwnedPermit, Inside),
    /// It is refused.
    Refused(ClassId, Reason),
    /// The gate alone decides.
    GateAlone(Alone),
}

impl Layer {
    pub(crate) fn new(gate: Gate, size: Size, settings: Settings, mode: Mode) -> Self {
        Self {
            gate,
            started: Instant::now(),
            state: Published::default(),
            happened: Notify::new(),
            desk: Mutex::new(Counter {
                desk: Desk::new(Duration::ZERO, settings, size.of_all(), mode),
                size,
                limit: None,
            }),
        }
    }

    /// The time by this layer's clock.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// When that is by the runtime's.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.started + at
    }

    /// Looks at the desk.
    pub(super) fn with<R>(&self, look: impl FnOnce(&mut Counter) -> R) -> R {
        let mut counter = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut counter)
    }

    /// Asks the desk, with the gate at hand, and tells everyone what became of them.
    pub(super) fn ask<R>(
        self: &Arc<Self>,
        ask: impl FnOnce(
            &mut Desk<Waiter>,
            Duration,
            &mut dyn FnMut(&Waiter) -> Entry<OwnedPermit>,
            &mut Moves<Waiter, OwnedPermit>,
        ) -> R,
    ) -> R {
        let mut moves = Vec::new();
        let mut gate = |waiter: &Waiter| match self.gate.enter_if_room_owned(waiter.rank) {
            Some(permit) => Entry::In(permit),
            None if waiter.rank.is_some() => Entry::RankFull,
            None => Entry::Full,
        };
        let now = self.now();
        let result = self.with(|counter| ask(&mut counter.desk, now, &mut gate, &mut moves));
        for (waiter, outcome) in moves {
            let told = match outcome {
                Outcome::Enters(permit, inside) => {
                    Told::In(permit, Inside::new(Arc::clone(self), inside))
                }
                Outcome::Refused(reason) => Told::Refused(waiter.class, reason),
                Outcome::GateAlone(alone) => Told::GateAlone(alone),
            };
            // A client that has just left: what it was told gives itself back.
            drop(waiter.tell.send(told));
        }
        result
    }

    /// When the first of the held is sent away, if any is held.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        self.with(|counter| counter.desk.next_timeout())
    }

    /// Lets in who is next, and sends away whose time is up.
    pub(super) fn settle(self: &Arc<Self>) {
        self.ask(|desk, now, mut gate, moves| desk.settle(now, &mut gate, moves));
    }

    /// Decides by the state as it is now.
    pub(super) fn observe(self: &Arc<Self>) {
        let now = self.now();
        self.with(|counter| {
            let stale_after = counter.desk.judge().settings().stale_after;
            let reading = self.state.read(now, stale_after);
            counter.desk.observe(now, &reading);
            counter.move_limit(&self.gate, &reading);
        });
        self.ask(|desk, now, mut gate, moves| desk.decide_anew(now, &mut gate, moves));
    }

    /// The engine told its size.
    pub(crate) fn resize(&self, size: Size) {
        self.with(|counter| {
            counter.size = size;
            counter.desk.resize(size.of_all());
            // What the gate made of the report is not the limit from here.
            counter.limit = None;
        });
        self.happened.notify_one();
    }

    /// Leaves everyone to the gate, which has been stopped. Says how many were held.
    pub(crate) fn stop(self: &Arc<Self>) -> u64 {
        self.ask(|desk, _, _, moves| desk.leave_all_to_gate(moves))
    }

    /// Follows other settings from now on.
    pub(crate) fn reload(&self, settings: Settings) {
        self.with(|counter| {
            counter.desk.reload(settings);
        });
        self.happened.notify_one();
    }

    /// Whether the engine takes its memory in advance, how often its state is
    /// sampled, and the age at which that is stale.
    pub(super) fn sampling(&self) -> (bool, Duration, Duration) {
        self.with(|counter| {
            let settings = counter.desk.judge().settings();
            (
                settings.preallocates,
                settings.sample_interval,
                settings.stale_after,
            )
        })
    }
}

impl Counter {
    /// Puts the limit in force. Without a fresh state it is the one that was set,
    /// as if there were no policy.
    fn move_limit(&mut self, gate: &Gate, reading: &Reading) {
        if self.desk.mode() == Mode::Observe {
            return;
        }
        let limit = match reading.fresh() {
            Some(_) => self.desk.judge().limit_of(self.size.limit),
            None => self.size.limit,
        };
        if self.limit == Some(limit) {
            return;
        }
        let settings = GateSettings {
            engine_request_limit: Some(limit),
            ..GateSettings::default()
        };
        match gate.set_limits(settings) {
            Ok(_) => self.limit = Some(limit),
            Err(error) => warn!(limit, %error, "the policy's limit was not usable"),
        }
    }
}

impl Size {
    fn of_all(self) -> EngineSize {
        EngineSize {
            request_limit: self.limit.saturating_mul(self.ranks),
            batch: self.batch.saturating_mul(self.ranks),
        }
    }
}
