//! Puts samples together into a [`State`].
//!
//! Whoever calls reads the pages, ten times a second unless set otherwise, and
//! hands over what they said; this remembers what a single page cannot say: how
//! long the engine has been idle.
//!
//! An engine works while it holds a request, or if its progress counter has
//! moved since the last sample: a request may come and go between two samples.
//!
//! In one step every sequence of the batch gets one token, so that the engine
//! takes `generated tokens per second / sequences in the batch` steps a second.

use std::time::Duration;

use crate::memory;
use crate::state::{DeviceSample, EngineSample, State};

/// How often a caller samples unless set otherwise: 10 Hz.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Follows one GPU and the engine on it.
#[derive(Clone, Debug)]
pub struct Sampler {
    preallocates: bool,
    progress: Option<f64>,
    worked: Duration,
    last: Option<(Duration, EngineSample)>,
}

impl Sampler {
    /// Starts at `now`, as if the engine had just worked. `preallocates`: the
    /// engine takes its device memory at the start, as most do.
    #[must_use]
    pub fn new(preallocates: bool, now: Duration) -> Self {
        Sampler {
            preallocates,
            progress: None,
            worked: now,
            last: None,
        }
    }

    /// The state that these samples amount to. A source that did not answer is
    /// passed as the default sample.
    pub fn observe(&mut self, now: Duration, engine: EngineSample, device: DeviceSample) -> State {
        let moved = engine.progress.is_some() && self.progress != engine.progress;
        let first = self.progress.is_none();
        self.progress = engine.progress.or(self.progress);
        let holds = engine.running.unwrap_or(0) > 0 || engine.waiting.unwrap_or(0) > 0;
        // An engine that tells nothing is not known to be idle.
        let silent = engine.running.is_none() && engine.progress.is_none();
        if holds || silent || (moved && !first) || now < self.worked {
            self.worked = now;
        }
        let steps_per_second = self.steps_per_second(now, &engine);
        self.last = Some((now, engine));
        State {
            at: now,
            engine,
            device,
            steps_per_second,
            memory: memory::choose(engine.pool, device.memory, self.preallocates),
            idle_ms: (now - self.worked).as_secs_f64() * 1e3,
        }
    }

    /// From this sample and the one before; `None` where either does not tell,
    /// the counter fell (the engine restarted) or nothing ran.
    fn steps_per_second(&self, now: Duration, engine: &EngineSample) -> Option<f64> {
        let (then, before) = self.last.as_ref()?;
        let seconds = now.checked_sub(*then)?.as_secs_f64();
        let tokens = engine.generated? - before.generated?;
        let running = (engine.running? as f64 + before.running? as f64) / 2.0;
        let known = seconds > 0.0 && tokens > 0.0 && running > 0.0;
        known.then(|| tokens / seconds / running)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::{Memory, Unit};

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn engine(running: u64, progress: f64) -> EngineSample {
        EngineSample {
            running: Some(running),
            progress: Some(progress),
            ..EngineSample::default()
        }
    }

    fn idle_ms(sampler: &mut Sampler, ms: u64, sample: EngineSample) -> f64 {
        sampler
            .observe(at(ms), sample, DeviceSample::default())
            .idle_ms
    }

    #[test]
    fn idle_time_counts_from_the_last_work() {
        let mut sampler = Sampler::new(true, at(0));
        assert_eq!(idle_ms(&mut sampler, 100, engine(0, 5.0)), 100.0);
        assert_eq!(idle_ms(&mut sampler, 200, engine(1, 5.0)), 0.0);
        assert_eq!(idle_ms(&mut sampler, 2300, engine(0, 5.0)), 2100.0);
        let between = idle_ms(&mut sampler, 2400, engine(0, 6.0));
        assert_eq!(between, 0.0, "a request came and went between two samples");
    }

    #[test]
    fn an_engine_that_tells_nothing_is_not_idle() {
        let mut sampler = Sampler::new(true, at(0));
        assert_eq!(idle_ms(&mut sampler, 60_000, EngineSample::default()), 0.0);
    }

    #[test]
    fn a_clock_that_jumps_back_is_no_idle_time() {
        let mut sampler = Sampler::new(true, at(60_000));
        assert_eq!(idle_ms(&mut sampler, 10, engine(0, 1.0)), 0.0);
        assert_eq!(idle_ms(&mut sampler, 20, engine(0, 1.0)), 10.0);
    }

    #[test]
    fn device_memory_counts_only_where_it_is_not_taken_in_advance() {
        let device = DeviceSample {
            memory: Memory::new(90, 100, Unit::DeviceBytes),
            ..DeviceSample::default()
        };
        for (preallocates, expected) in [(true, None), (false, device.memory)] {
            let mut sampler = Sampler::new(preallocates, at(0));
            let state = sampler.observe(at(1), EngineSample::default(), device);
            assert_eq!(state.memory, expected);
        }
    }

    #[test]
    fn steps_are_told_by_generated_tokens() {
        let mut sampler = Sampler::new(true, at(0));
        let mut steps = |ms, running, generated| {
            let sample = EngineSample {
                generated: Some(generated),
                ..engine(running, generated)
            };
            let state = sampler.observe(at(ms), sample, DeviceSample::default());
            state.steps_per_second
        };
        assert_eq!(steps(0, 10, 0.0), None, "the first sample");
        assert_eq!(steps(100, 10, 50.0), Some(50.0));
        assert_eq!(steps(200, 10, 0.0), None, "the engine restarted");
        assert_eq!(steps(200, 10, 9.0), None, "no time has passed");
        assert_eq!(steps(100, 10, 99.0), None, "the clock jumped back");
        assert_eq!(
            steps(200, 0, 109.0),
            Some(20.0),
            "ten a moment ago, none now"
        );
    }

    proptest! {
        #[test]
        fn idle_time_is_never_negative_nor_longer_than_the_run(
            samples in prop::collection::vec((0_u64..1_000_000, 0_u64..3, 0_u8..3), 1..60),
        ) {
            let mut sampler = Sampler::new(true, at(0));
            for (ms, running, progress) in samples {
                let idle = idle_ms(&mut sampler, ms, engine(running, progress.into()));
                // The least that a float of seconds can be off.
                prop_assert!((0.0..=ms as f64 + 1e-6).contains(&idle));
                prop_assert!(running == 0 || idle == 0.0);
            }
        }
    }
}
