//! The events in order, and who acts on them.
//!
//! There are five kinds: a step of the engine ends, the door wakes, the engine is
//! sampled, a refused client comes again, a request arrives. The earliest is next; of
//! those at the same moment, the first in this list.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_policy::class::Classes;
use tidegate_policy::sampler;
use tidegate_policy::settings::Settings;

use super::door::{Door, Moves};
use super::engine::{Cold, Engine, Slow};
use super::report::Report;
use super::request::Request;
use super::retries::{Retries, Returning};
use super::way_in::WayIn;
use crate::engine::batch::BatchConfig;

/// What is simulated, besides the way in and the requests.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The engine.
    pub engine: BatchConfig,
    /// Whether it gets cold.
    pub cold: Option<Cold>,
    /// A spell in which it is slow, if there is one.
    pub slow: Option<Slow>,
    /// The classes, and what they promise.
    pub classes: Classes,
    /// How often the engine is sampled.
    pub sample_interval: Duration,
    /// Requests that arrive before this are not counted.
    pub from: Duration,
    /// Nor are those that arrive from this on.
    pub until: Duration,
    /// How long after `until` the last answers are waited for. What has not ended
    /// by then has not kept its promise.
    pub patience: Duration,
    /// Whether clients come again that are refused.
    pub retries: Option<Retries>,
}

impl Setup {
    /// Two minutes, of which the first half minute is not counted.
    #[must_use]
    pub fn new(engine: BatchConfig, policy: Settings) -> Self {
        Setup {
            engine,
            cold: None,
            slow: None,
            classes: policy.classes,
            sample_interval: sampler::INTERVAL,
            from: Duration::from_secs(30),
            until: Duration::from_secs(120),
            patience: Duration::from_secs(60),
            retries: None,
        }
    }
}

/// Runs the requests through the way in. The same arguments give the same report.
///
/// Requests must be in order of arrival; one that comes before its predecessor
/// arrives with it.
#[must_use]
pub fn simulate(setup: &Setup, way_in: &WayIn, requests: &[Request]) -> Report {
    let classes = way_in.classes().unwrap_or(&setup.classes);
    let mut world = World {
        setup,
        classes,
        requests,
        now: Duration::ZERO,
        engine: Engine::new(&setup.engine, setup.cold, setup.slow),
        door: way_in.door(setup.engine.max_num_seqs),
        answers: HashMap::new(),
        report: Report::new(classes, setup.until.saturating_sub(setup.from)),
        moves: Moves::default(),
        returning: setup.retries.map(Returning::new),
    };
    world.run();
    world.report.decisions = world.door.decisions().to_vec();
    world.report.target = world.door.target();
    world.report
}

struct World<'a> {
    setup: &'a Setup,
    classes: &'a Classes,
    requests: &'a [Request],
    now: Duration,
    engine: Engine,
    door: Box<dyn Door>,
    /// The answers that run: tokens so far, and when the first came.
    answers: HashMap<u64, Answer>,
    report: Report,
    moves: Moves,
    returning: Option<Returning>,
}

#[derive(Default)]
struct Answer {
    tokens: u64,
    first: Option<Duration>,
}

enum Event {
    StepEnds,
    DoorWakes,
    Sampled,
    ComesAgain,
    Arrives,
}

impl World<'_> {
    fn run(&mut self) {
        let (mut next, mut sample_at) = (0, Duration::ZERO);
        let interval = self.setup.sample_interval.max(Duration::from_micros(1));
        let last = self.setup.until.saturating_add(self.setup.patience);
        loop {
            let arrival = self.requests.get(next).map(|request| request.at);
            let step = self.engine.step_ends();
            let wake = self.door.next_wake();
            let again = self.returning.as_ref().and_then(Returning::next);
            if [arrival, step, wake, again].iter().all(Option::is_none) {
                return;
            }
            let events = [
                (step, Event::StepEnds),
                (wake, Event::DoorWakes),
                (Some(sample_at), Event::Sampled),
                (again, Event::ComesAgain),
                (arrival, Event::Arrives),
            ];
            let due = events
                .into_iter()
                .filter_map(|(at, event)| Some((at?, event)));
            // The first of several at the same moment.
            let Some((at, event)) = due.min_by_key(|(at, _)| *at) else {
                return;
            };
            if at > last {
                return;
            }
            self.now = self.now.max(at);
            match event {
                Event::StepEnds => self.step_ends(),
                Event::DoorWakes => self.door.wakes(self.now, &mut self.moves),
                Event::Sampled => {
                    self.sampled();
                    sample_at = sample_at.saturating_add(interval);
                }
                Event::ComesAgain => {
                    if let Some(id) = self.returning.as_mut().and_then(Returning::comes) {
                        self.asks(id);
                    }
                }
                Event::Arrives => {
                    self.arrives(next);
                    next += 1;
                }
            }
            self.carry_out();
        }
    }

    fn counted(&self, id: u64) -> Option<&Request> {
        let request = self.requests.get(usize::try_from(id).ok()?)?;
        let counts = (self.setup.from..self.setup.until).contains(&request.at);
        counts.then_some(request)
    }

    fn arrives(&mut self, index: usize) {
        let (id, request) = (index as u64, self.requests[index]);
        if self.counted(id).is_some() {
            self.report.class(request.class).arrived += 1;
        }
        self.asks(id);
    }

    /// A request comes to the door, for the first time or again.
    fn asks(&mut self, id: u64) {
        let request = usize::try_from(id)
            .ok()
            .and_then(|at| self.requests.get(at));
        let Some(&request) = request else {
            return;
        };
        if self.counted(id).is_some() {
            self.report.class(request.class).asked += 1;
        }
        self.door.arrives(self.now, id, &request, &mut self.moves);
    }

    /// Whether the client of a request that was refused comes again.
    fn comes_again(&mut self, id: u64) -> bool {
        let held = self.door.held();
        let request = usize::try_from(id)
            .ok()
            .and_then(|at| self.requests.get(at));
        let Some((request, returning)) = request.zip(self.returning.as_mut()) else {
            return false;
        };
        returning.refused(self.now, id, request.at, held)
    }

    fn sampled(&mut self) {
        let sample = self.engine.sample();
        if let Some(returning) = &mut self.returning {
            returning.observe(self.now);
        }
        let share = sample.pool.map_or(0.0, |pool| pool.share());
        self.report.most_memory = self.report.most_memory.max(share);
        self.door.sampled(self.now, sample, &mut self.moves);
    }

    fn step_ends(&mut self) {
        let Some(outcome) = self.engine.end_step() else {
            return;
        };
        self.report.lost_tokens += outcome.lost_tokens;
        for id in outcome.emitted {
            let answer = self.answers.entry(id).or_default();
            answer.tokens += 1;
            if answer.first.is_none() {
                answer.first = Some(self.now);
                self.door.first_token(self.now, id, &mut self.moves);
            }
        }
        for id in outcome.finished {
            self.ends(id);
        }
    }

    fn ends(&mut self, id: u64) {
        let answer = self.answers.remove(&id).unwrap_or_default();
        if let Some(returning) = &self.returning {
            returning.done();
        }
        if let Some(&request) = self.counted(id) {
            let first = answer.first.unwrap_or(self.now).saturating_sub(request.at);
            let end = self.now.saturating_sub(request.at);
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let slo = self.classes.get(request.class).slo;
            let kept = slo.kept(ms(first), ms(end));
            let tokens = u64::from(request.prompt_tokens) + u64::from(request.output_tokens);
            self.report
                .class(request.class)
                .end(first, end, tokens, kept);
        }
        self.door.ends(self.now, id, answer.tokens, &mut self.moves);
    }

    /// Carries out what the door decided, until it decides nothing more.
    fn carry_out(&mut self) {
        loop {
            let Moves { enter, refuse } = std::mem::take(&mut self.moves);
            if enter.is_empty() && refuse.is_empty() {
                break;
            }
            for (id, reason) in refuse {
                if self.comes_again(id) {
                    continue;
                }
                if let Some(&request) = self.counted(id) {
                    self.report.class(request.class).refuse(reason);
                }
            }
            for id in enter {
                let request = usize::try_from(id)
                    .ok()
                    .and_then(|at| self.requests.get(at));
                let taken = request.is_some_and(|request| self.engine.submit(id, request).is_ok());
                if !taken {
                    // Longer than the engine's whole cache: it answers with an error.
                    self.door.ends(self.now, id, 0, &mut self.moves);
                }
            }
        }
        self.engine.start(self.now);
    }
}
