//! The simulated engine in virtual time.

use std::time::Duration;

use tidegate_policy::memory::{Memory, Unit};
use tidegate_policy::state::EngineSample;

use super::request::Request;
use crate::engine::batch::{Batch, BatchConfig, StepOutcome, TooLong, Work};

/// An engine that gets cold: its first step after idling takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// Idle for longer than this it is cold.
    pub after: Duration,
    /// What this adds to its next step.
    pub adds: Duration,
}

/// A spell in which the engine is slow, as one whose clocks are throttled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// When it begins.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// How many times as long a step takes that begins in it.
    pub times: f64,
}

/// One rank, and the step that it is in.
pub(super) struct Engine {
    batch: Batch,
    block_size: u32,
    cold: Option<Cold>,
    slow: Option<Slow>,
    step: Option<(Duration, StepOutcome)>,
    worked: Duration,
    prefilled: u64,
    generated: u64,
}

impl Engine {
    pub(super) fn new(config: &BatchConfig, cold: Option<Cold>, slow: Option<Slow>) -> Self {
        Engine {
            batch: Batch::new(config.clone()),
            block_size: config.block_size.max(1),
            cold,
            slow,
            step: None,
            worked: Duration::ZERO,
            prefilled: 0,
            generated: 0,
        }
    }

    pub(super) fn submit(&mut self, id: u64, request: &Request) -> Result<(), TooLong> {
        let work = Work {
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
        };
        self.batch.submit(id, work)
    }

    /// Starts the next step if none runs and there is something to do.
    pub(super) fn start(&mut self, now: Duration) {
        if self.step.is_some() {
            return;
        }
        if let Some(outcome) = self.batch.step() {
            let idle = now.saturating_sub(self.worked);
            let cold = self.cold.filter(|cold| idle > cold.after);
            let adds = cold.map_or(Duration::ZERO, |cold| cold.adds);
            let slow = self.slow.filter(|it| (it.from..it.until).contains(&now));
            let times = slow.map_or(1.0, |slow| slow.times);
            let step = outcome.duration.as_secs_f64() * times;
            let step = Duration::try_from_secs_f64(step).unwrap_or(outcome.duration);
            // A step of no length would never let time pass.
            let takes = (step + adds).max(Duration::from_micros(1));
            self.step = Some((now.saturating_add(takes), outcome));
        }
    }

    /// When the step that runs ends.
    pub(super) fn step_ends(&self) -> Option<Duration> {
        self.step.as_ref().map(|(ends, _)| *ends)
    }

    /// Ends the step that runs, and tells what it did.
    pub(super) fn end_step(&mut self) -> Option<StepOutcome> {
        let (ends, outcome) = self.step.take()?;
        self.worked = ends;
        self.generated += outcome.emitted.len() as u64;
        self.prefilled += outcome.shape.tokens;
        Some(outcome)
    }

    /// What its metrics page would say.
    pub(super) fn sample(&self) -> EngineSample {
        let kv = self.batch.kv();
        let tokens = |blocks: u32| u64::from(blocks) * u64::from(self.block_size);
        EngineSample {
            running: Some(self.batch.running() as u64),
            waiting: Some(self.batch.waiting() as u64),
            pool: Memory::new(tokens(kv.used()), tokens(kv.total()), Unit::KvTokens),
            progress: Some((self.generated + self.prefilled) as f64),
            generated: Some(self.generated as f64),
        }
    }
}
