//! The desk behind its lock.
//!
//! Nothing is done under the lock but deciding: whoever is told something is told
//! after it is let go, since what they do then may come back here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{Gate, Settings as GateSettings};
use tidegate_policy::class::ClassId;
use tidegate_policy::desk::{Alone, Desk, Entry, Moves, Outcome};
use tidegate_policy::judge::EngineSize;
use tidegate_policy::published::{Published, Reading};
use tidegate_policy::reason::Reason;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;
use tidegate_policy::state::State;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::door::Door;
use super::inside::Inside;

/// The policy before one door: a worker's gate, unless something else is said.
#[derive(Debug)]
pub(crate) struct Layer<D: Door = Gate> {
    pub(super) door: D,
    started: Instant,
    /// The engine's state as last sampled: read without a lock.
    pub(super) state: Published,
    desk: Mutex<Counter<D>>,
    /// Something happened that may let somebody in.
    pub(super) happened: Notify,
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct Counter<D: Door> {
    pub(super) desk: Desk<Waiter<D>>,
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
pub(super) struct Waiter<D: Door> {
    pub(super) wanted: D::Wanted,
    pub(super) class: ClassId,
    /// `None` while it arrives: it is told what became of it at once.
    pub(super) tell: Option<oneshot::Sender<Told<D>>>,
}

/// The desk's answer.
#[derive(Debug)]
pub(super) enum Told<D: Door> {
    /// It is in.
    In(D::Permit, Inside<D>),
    /// It is refused.
    Refused(Refused),
    /// The gate alone decides.
    GateAlone(Alone),
}

/// A request that the policy refused.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The name of its class.
    pub(crate) class: String,
    /// Why.
    pub(crate) reason: Reason,
    /// How many are held that would go before it if it came again now.
    pub(crate) ahead: u64,
}

impl<D: Door> Layer<D> {
    pub(crate) fn new(door: D, size: Size, settings: Settings, mode: Mode) -> Self {
        Self {
            door,
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

    /// What it holds requests before.
    pub(crate) fn door(&self) -> &D {
        &self.door
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
    pub(super) fn with<R>(&self, look: impl FnOnce(&mut Counter<D>) -> R) -> R {
        let mut counter = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut counter)
    }

    /// Asks the desk, with the gate at hand, and tells everyone what became of them. Gives
    /// what became of one that has just arrived, if something did.
    pub(super) fn ask<R>(
        self: &Arc<Self>,
        ask: impl FnOnce(
            &mut Desk<Waiter<D>>,
            Duration,
            &mut dyn FnMut(&Waiter<D>) -> Entry<D::Permit>,
            &mut Moves<Waiter<D>, D::Permit>,
        ) -> R,
    ) -> (R, Option<Told<D>>) {
        let mut moves = Vec::new();
        let mut gate = |waiter: &Waiter<D>| self.door.enter(&waiter.wanted);
        let now = self.now();
        let (result, refused) = self.with(|counter| {
            let result = ask(&mut counter.desk, now, &mut gate, &mut moves);
            (result, counter.refused(&moves))
        });
        let mut refused = refused.into_iter();
        let mut at_once = None;
        for (waiter, outcome) in moves {
            let told = match outcome {
                Outcome::Enters(permit, inside) => {
                    Told::In(permit, Inside::new(Arc::clone(self), inside))
                }
                // One for each, in the same order.
                Outcome::Refused(_) => match refused.next() {
                    Some(refused) => Told::Refused(refused),
                    None => continue,
                },
                Outcome::GateAlone(alone) => Told::GateAlone(alone),
            };
            match waiter.tell {
                // A client that has just left: what it was told gives itself back.
                Some(tell) => drop(tell.send(told)),
                None => at_once = Some(told),
            }
        }
        (result, at_once)
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
    pub(crate) fn observe(self: &Arc<Self>) {
        let now = self.now();
        self.with(|counter| {
            let stale_after = counter.desk.judge().settings().stale_after;
            let reading = self.state.read(now, stale_after);
            counter.desk.observe(now, &reading);
            counter.move_limit(&self.door, &reading);
        });
        self.ask(|desk, now, mut gate, moves| desk.decide_anew(now, &mut gate, moves));
    }

    /// Decides by this state from now on.
    pub(crate) fn knows(self: &Arc<Self>, state: State) {
        self.state.publish(state);
        self.observe();
    }

    /// How often the state is sampled.
    pub(crate) fn interval(&self) -> Duration {
        self.sampling().1
    }

    /// Whether anybody is inside the engine, or held.
    pub(crate) fn is_at_work(&self) -> bool {
        self.with(|counter| {
            let desk = &counter.desk;
            desk.judge().inside() > 0 || desk.held_in_all() > 0
        })
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
            .0
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

impl<D: Door> Counter<D> {
    /// What those who are refused are told, all at once: thousands may be, and each would
    /// have to come back to the lock for it.
    fn refused(&self, moves: &Moves<Waiter<D>, D::Permit>) -> Vec<Refused> {
        let classes = &self.desk.judge().settings().classes;
        let refused = moves.iter().filter_map(|(waiter, outcome)| match outcome {
            Outcome::Refused(reason) => Some((classes.get(waiter.class), *reason)),
            _ => None,
        });
        let told = refused.map(|(its, reason)| {
            let all = classes.all().iter().enumerate();
            let before = all.filter(|(_, other)| other.priority >= its.priority);
            Refused {
                class: its.name.clone(),
                reason,
                ahead: before.map(|(at, _)| self.desk.held(ClassId(at))).sum(),
            }
        });
        told.collect()
    }

    /// Puts the limit in force. Without a fresh state it is the one that was set,
    /// as if there were no policy.
    fn move_limit(&mut self, door: &D, reading: &Reading) {
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
        if door.set_limit(limit) {
            self.limit = Some(limit);
        }
    }
}

impl Size {
    /// Of an engine with so many ranks that tells this batch, under the limits that
    /// someone set.
    pub(crate) fn of(explicit: GateSettings, ranks: usize, max_num_seqs: Option<u32>) -> Self {
        let limits = explicit.resolve_for(ranks, max_num_seqs);
        let limit = limits.map_or(u32::MAX, |limits| limits.engine_request_limit);
        Self {
            limit,
            ranks: u32::try_from(ranks).unwrap_or(u32::MAX).max(1),
            batch: max_num_seqs.unwrap_or(limit),
        }
    }

    fn of_all(self) -> EngineSize {
        EngineSize {
            request_limit: self.limit.saturating_mul(self.ranks),
            ranks: self.ranks,
            batch: self.batch.saturating_mul(self.ranks),
        }
    }
}
