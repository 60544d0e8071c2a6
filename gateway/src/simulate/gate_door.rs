//! The gate as a way in: the sequential specification, on one rank.

use std::collections::HashMap;
use std::time::Duration;

use tidegate::spec::{Answer, LaneIndex, Number, SpecGate};
use tidegate::{EngineReport, Settings};

use super::door::{Door, Moves};
use super::request::Request;

/// A gate, and who is where in it.
pub(super) struct GateDoor {
    gate: SpecGate,
    queued: HashMap<Number, u64>,
    inside: HashMap<u64, Place>,
}

struct Place {
    lane: LaneIndex,
    waiting: bool,
}

impl GateDoor {
    pub(super) fn new(limits: Settings, batch: u32) -> Self {
        let of = |settings| {
            let mut gate = SpecGate::new(settings)?;
            // Limits that nobody set follow the engine, as they do in a worker.
            let _ = gate.report_engine(&EngineReport {
                ranks: vec![0],
                max_num_seqs: Some(batch.max(1)),
            });
            Ok::<_, tidegate::LimitError>(gate)
        };
        let gate = of(limits).or_else(|_| of(Settings::default()));
        GateDoor {
            gate: gate.expect("defaults are in range"),
            queued: HashMap::new(),
            inside: HashMap::new(),
        }
    }

    /// The engine request limit in force.
    pub(super) fn limit(&self) -> u32 {
        self.gate.snapshot().limits.engine_request_limit
    }

    /// Moves the engine request limit; one out of range changes nothing.
    pub(super) fn set_limit(&mut self, limit: u32, moves: &mut Moves) {
        let settings = Settings {
            engine_request_limit: Some(limit),
            ..Settings::default()
        };
        if self.gate.set_limits(settings).is_ok() {
            self.take_offers(moves);
        }
    }

    /// Lets a request in if it fits now; it is not counted otherwise.
    pub(super) fn enter_if_room(&mut self, id: u64) -> bool {
        let lane = self.gate.enter_if_room(None);
        if let Some(lane) = lane {
            self.enters(id, lane);
        }
        lane.is_some()
    }

    /// Lets a request in, queues it or refuses it.
    pub(super) fn asks(&mut self, id: u64, moves: &mut Moves) {
        match self.gate.request(None) {
            Ok(Answer::Admitted(lane)) => {
                self.enters(id, lane);
                moves.enter.push(id);
            }
            Ok(Answer::Queued(number)) => {
                self.queued.insert(number, id);
            }
            Err(_) => moves.refuse.push((id, None)),
        }
    }

    fn enters(&mut self, id: u64, lane: LaneIndex) {
        let waiting = true;
        self.inside.insert(id, Place { lane, waiting });
    }

    fn take_offers(&mut self, moves: &mut Moves) {
        for number in self.gate.take_offers() {
            if self.gate.take(number)
                && let Some(id) = self.queued.remove(&number)
            {
                self.enters(id, number.lane());
                moves.enter.push(id);
            }
        }
    }
}

impl Door for GateDoor {
    fn held(&self) -> u64 {
        self.queued.len() as u64
    }

    fn arrives(&mut self, _: Duration, id: u64, _: &Request, moves: &mut Moves) {
        self.asks(id, moves);
    }

    fn first_token(&mut self, _: Duration, id: u64, moves: &mut Moves) {
        if let Some(place) = self.inside.get_mut(&id)
            && std::mem::take(&mut place.waiting)
        {
            self.gate.first_token(place.lane);
            self.take_offers(moves);
        }
    }

    fn ends(&mut self, _: Duration, id: u64, _: u64, moves: &mut Moves) {
        if let Some(place) = self.inside.remove(&id) {
            self.gate.release(place.lane, place.waiting);
            self.take_offers(moves);
        }
    }
}
