//! The policy as a way in: its desk holds requests, so that the gate's queue stays
//! empty, and lets them in through the gate.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_policy::desk::{Alone, Desk, Entry, Outcome};
use tidegate_policy::judge::{EngineSize, Inside};
use tidegate_policy::published::Published;
use tidegate_policy::sampler::Sampler;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::{Counts, Mode};
use tidegate_policy::state::{DeviceSample, EngineSample};

use super::door::{Door, Moves};
use super::gate_door::GateDoor;
use super::request::Request;

/// The model that all simulated requests name.
const MODEL: &str = "sim";

/// The policy before a gate.
pub(super) struct PolicyDoor {
    gate: GateDoor,
    desk: Desk<u64>,
    sampler: Sampler,
    published: Published,
    /// Left to the gate, which may queue them itself.
    at_gate: HashMap<u64, Alone>,
    inside: HashMap<u64, Inside>,
}

type DeskMoves = tidegate_policy::desk::Moves<u64, ()>;

impl PolicyDoor {
    pub(super) fn new(settings: Settings, gate: GateDoor, mode: Mode, batch: u32) -> Self {
        let size = EngineSize {
            request_limit: gate.limit(),
            ranks: 1,
            batch,
        };
        PolicyDoor {
            gate,
            sampler: Sampler::new(settings.preallocates, Duration::ZERO),
            published: Published::default(),
            desk: Desk::new(Duration::ZERO, settings, size, mode),
            at_gate: HashMap::new(),
            inside: HashMap::new(),
        }
    }

    /// Tells the desk who came in by the gate's own decision.
    fn let_in_by_gate(&mut self, now: Duration, moves: &mut Moves, by_gate: Moves) {
        for id in &by_gate.enter {
            if let Some(alone) = self.at_gate.remove(id) {
                self.inside.insert(*id, self.desk.entered(now, alone));
            }
        }
        for (id, _) in &by_gate.refuse {
            self.at_gate.remove(id);
        }
        moves.enter.extend(by_gate.enter);
        moves.refuse.extend(by_gate.refuse);
    }

    /// Asks the desk, with the gate at hand, and carries out what it says.
    fn ask<R>(
        &mut self,
        now: Duration,
        moves: &mut Moves,
        ask: impl FnOnce(&mut Desk<u64>, &mut dyn FnMut(&u64) -> Entry<()>, &mut DeskMoves) -> R,
    ) {
        let mut said = DeskMoves::new();
        let gate = &mut self.gate;
        let mut enter = |id: &u64| match gate.enter_if_room(*id) {
            true => Entry::In(()),
            false => Entry::Full,
        };
        ask(&mut self.desk, &mut enter, &mut said);
        for (id, outcome) in said {
            match outcome {
                Outcome::Enters((), inside) => {
                    self.inside.insert(id, inside);
                    moves.enter.push(id);
                }
                Outcome::Refused(reason) => moves.refuse.push((id, Some(reason))),
                Outcome::GateAlone(alone) => {
                    self.at_gate.insert(id, alone);
                    let mut by_gate = Moves::default();
                    self.gate.asks(id, &mut by_gate);
                    self.let_in_by_gate(now, moves, by_gate);
                }
            }
        }
    }

    fn settle(&mut self, now: Duration, moves: &mut Moves) {
        self.ask(now, moves, |desk, mut gate, said| {
            desk.settle(now, &mut gate, said)
        });
    }
}

impl Door for PolicyDoor {
    fn arrives(&mut self, now: Duration, id: u64, request: &Request, moves: &mut Moves) {
        let input = u64::from(request.prompt_tokens);
        let judge = self.desk.judge();
        let profile = judge.profile(MODEL, request.class, input, None);
        self.ask(now, moves, |desk, mut gate, said| {
            desk.arrives(now, profile, id, &mut gate, said)
        });
    }

    fn first_token(&mut self, now: Duration, id: u64, moves: &mut Moves) {
        if let Some(inside) = self.inside.get_mut(&id) {
            self.desk.first_token(now, inside);
        }
        let mut by_gate = Moves::default();
        self.gate.first_token(now, id, &mut by_gate);
        self.let_in_by_gate(now, moves, by_gate);
        self.settle(now, moves);
    }

    fn ends(&mut self, now: Duration, id: u64, output: u64, moves: &mut Moves) {
        if let Some(inside) = self.inside.remove(&id) {
            self.desk.ended(now, inside, Some(output));
        }
        let mut by_gate = Moves::default();
        self.gate.ends(now, id, output, &mut by_gate);
        self.let_in_by_gate(now, moves, by_gate);
        self.settle(now, moves);
    }

    fn sampled(&mut self, now: Duration, sample: EngineSample, moves: &mut Moves) {
        let device = DeviceSample::default();
        self.published
            .publish(self.sampler.observe(now, sample, device));
        let stale_after = self.desk.judge().settings().stale_after;
        let reading = self.published.read(now, stale_after);
        self.desk.observe(now, &reading);
        if self.desk.mode() == Mode::Enforce {
            let mut by_gate = Moves::default();
            self.gate.set_limit(self.desk.judge().limit(), &mut by_gate);
            self.let_in_by_gate(now, moves, by_gate);
        }
        self.ask(now, moves, |desk, mut gate, said| {
            desk.decide_anew(now, &mut gate, said);
        });
    }

    fn wakes(&mut self, now: Duration, moves: &mut Moves) {
        self.settle(now, moves);
    }

    fn decisions(&self) -> &[Counts] {
        self.desk.decisions()
    }

    fn held(&self) -> u64 {
        self.desk.held_in_all() + self.gate.held()
    }

    fn target(&self) -> Option<f64> {
        Some(self.desk.judge().target())
    }

    fn next_wake(&self) -> Option<Duration> {
        self.desk.next_timeout()
    }
}
