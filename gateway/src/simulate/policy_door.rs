//! The policy as a way in: it holds requests itself, so that the gate's queue
//! stays empty, and lets them in through the gate.
//!
//! Held requests are in order of their class's priority, then of arrival. All of
//! them are decided anew at each sample, first token and end, from the front, so
//! that one that has become hopeless leaves at once. Each leaves at its class's
//! timeout, whatever the engine does.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_policy::decision::Decision;
use tidegate_policy::judge::{EngineSize, Inside, Judge};
use tidegate_policy::profile::Profile;
use tidegate_policy::published::Published;
use tidegate_policy::reason::Reason;
use tidegate_policy::sampler::Sampler;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::{Counts, Mode, Tally};
use tidegate_policy::state::{DeviceSample, EngineSample};

use super::door::{Door, Moves};
use super::gate_door::GateDoor;
use super::request::Request;

/// The model that all simulated requests name.
const MODEL: &str = "sim";

/// The policy before a gate.
pub(super) struct PolicyDoor {
    gate: GateDoor,
    judge: Judge,
    sampler: Sampler,
    published: Published,
    mode: Mode,
    tally: Tally,
    /// Those that go first are in front.
    held: Vec<Held>,
    /// Left to the gate, which may queue them itself.
    at_gate: HashMap<u64, Held>,
    inside: HashMap<u64, Inside>,
}

struct Held {
    id: u64,
    profile: Profile,
    arrived: Duration,
    leaves: Duration,
    concurrency: u64,
}

impl PolicyDoor {
    pub(super) fn new(settings: Settings, gate: GateDoor, mode: Mode, batch: u32) -> Self {
        let size = EngineSize {
            request_limit: gate.limit(),
            batch,
        };
        PolicyDoor {
            gate,
            sampler: Sampler::new(settings.preallocates, Duration::ZERO),
            published: Published::default(),
            mode,
            tally: Tally::new(settings.classes.all().len()),
            judge: Judge::new(settings, size),
            held: Vec::new(),
            at_gate: HashMap::new(),
            inside: HashMap::new(),
        }
    }

    fn count(&mut self, profile: &Profile, decision: Decision) -> Decision {
        self.tally.count(self.mode, profile.class, decision)
    }

    /// How many of those that are held go before this class.
    fn ahead(&self, profile: &Profile) -> usize {
        let classes = &self.judge.settings().classes;
        let own = classes.get(profile.class).priority;
        let goes_first = |held: &Held| classes.get(held.profile.class).priority >= own;
        self.held.partition_point(goes_first)
    }

    fn enters(&mut self, now: Duration, held: Held) {
        let waited = ms(now, held.arrived);
        let inside = self
            .judge
            .enters(now, held.profile, waited, held.concurrency);
        self.inside.insert(held.id, inside);
    }

    /// Tells the judge who came in by the gate's own decision.
    fn let_in_by_gate(&mut self, now: Duration, moves: &mut Moves, by_gate: Moves) {
        for id in &by_gate.enter {
            if let Some(held) = self.at_gate.remove(id) {
                self.enters(now, held);
            }
        }
        for (id, _) in &by_gate.refuse {
            self.at_gate.remove(id);
        }
        moves.enter.extend(by_gate.enter);
        moves.refuse.extend(by_gate.refuse);
    }

    fn refuse(&mut self, now: Duration, held: &Held, reason: Reason, moves: &mut Moves) {
        let waited = ms(now, held.arrived);
        self.judge
            .gives_up(held.profile.class, waited, held.concurrency);
        moves.refuse.push((held.id, Some(reason)));
    }

    /// Decides about all that are held, from the front.
    fn decide_held(&mut self, now: Duration, moves: &mut Moves) {
        let mut stay = Vec::with_capacity(self.held.len());
        for held in std::mem::take(&mut self.held) {
            let waited = ms(now, held.arrived);
            let decision = self
                .judge
                .decide(now, &held.profile, waited, stay.len() as u64);
            match self.count(&held.profile, decision) {
                Decision::Refuse(reason) => self.refuse(now, &held, reason, moves),
                Decision::Wait(_) => stay.push(held),
                // What is left to the gate is not held by the policy any longer
                // than the gate has no room.
                Decision::Admit | Decision::GateAlone => match self.gate.enter_if_room(held.id) {
                    true => {
                        moves.enter.push(held.id);
                        self.enters(now, held);
                    }
                    false => stay.push(held),
                },
            }
        }
        self.held = stay;
    }
}

impl Door for PolicyDoor {
    fn arrives(&mut self, now: Duration, id: u64, request: &Request, moves: &mut Moves) {
        let input = u64::from(request.prompt_tokens);
        let profile = self.judge.profile(MODEL, request.class, input, None);
        let ahead = self.ahead(&profile);
        let decision = match self.judge.arrives(now, request.class) {
            Ok(()) => self.judge.decide(now, &profile, 0.0, ahead as u64),
            Err(reason) => Decision::Refuse(reason),
        };
        let timeout = self
            .judge
            .settings()
            .classes
            .get(request.class)
            .queue_timeout;
        let decision = match self.count(&profile, decision) {
            Decision::Wait(reason) if timeout.is_zero() => Decision::Refuse(reason),
            other => other,
        };
        let held = Held {
            id,
            concurrency: self.judge.concurrency(ahead as u64),
            profile,
            arrived: now,
            leaves: now.saturating_add(timeout),
        };
        match decision {
            Decision::Refuse(reason) => moves.refuse.push((id, Some(reason))),
            Decision::GateAlone => {
                let mut by_gate = Moves::default();
                self.gate.arrives(now, id, request, &mut by_gate);
                self.at_gate.insert(id, held);
                self.let_in_by_gate(now, moves, by_gate);
            }
            Decision::Admit if self.gate.enter_if_room(id) => {
                moves.enter.push(id);
                self.enters(now, held);
            }
            Decision::Admit | Decision::Wait(_) => self.held.insert(ahead, held),
        }
    }

    fn first_token(&mut self, now: Duration, id: u64, moves: &mut Moves) {
        if let Some(inside) = self.inside.get_mut(&id) {
            self.judge.first_token(now, inside);
        }
        let mut by_gate = Moves::default();
        self.gate.first_token(now, id, &mut by_gate);
        self.let_in_by_gate(now, moves, by_gate);
        self.decide_held(now, moves);
    }

    fn ends(&mut self, now: Duration, id: u64, output: u64, moves: &mut Moves) {
        if let Some(inside) = self.inside.remove(&id) {
            self.judge.ended(now, inside, output);
        }
        let mut by_gate = Moves::default();
        self.gate.ends(now, id, output, &mut by_gate);
        self.let_in_by_gate(now, moves, by_gate);
        self.decide_held(now, moves);
    }

    fn sampled(&mut self, now: Duration, sample: EngineSample, moves: &mut Moves) {
        let device = DeviceSample::default();
        self.published
            .publish(self.sampler.observe(now, sample, device));
        let stale_after = self.judge.settings().stale_after;
        let reading = self.published.read(now, stale_after);
        self.judge.observe(now, &reading);
        if self.mode == Mode::Enforce {
            let mut by_gate = Moves::default();
            self.gate.set_limit(self.judge.limit(), &mut by_gate);
            self.let_in_by_gate(now, moves, by_gate);
        }
        self.decide_held(now, moves);
    }

    fn wakes(&mut self, now: Duration, moves: &mut Moves) {
        let all = std::mem::take(&mut self.held);
        let (late, stay): (Vec<_>, _) = all.into_iter().partition(|held| held.leaves <= now);
        self.held = stay;
        for held in late {
            self.refuse(now, &held, Reason::QueueTimeout, moves);
        }
    }

    fn decisions(&self) -> &[Counts] {
        self.tally.classes()
    }

    fn next_wake(&self) -> Option<Duration> {
        self.held.iter().map(|held| held.leaves).min()
    }
}

fn ms(now: Duration, since: Duration) -> f64 {
    now.saturating_sub(since).as_secs_f64() * 1e3
}
