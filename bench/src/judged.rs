//! A policy that has seen some requests, for whatever asks it to decide.

use std::sync::Arc;
use std::time::Duration;

use tidegate_policy::file;
use tidegate_policy::judge::{EngineSize, Judge};
use tidegate_policy::memory::{Memory, Unit};
use tidegate_policy::published::Reading;
use tidegate_policy::state::{DeviceSample, EngineSample, State};

/// The engine that it judges for.
pub const SIZE: EngineSize = EngineSize {
    request_limit: 256,
    ranks: 1,
    batch: 256,
};

/// The engine's state: neither idle nor full.
#[must_use]
pub fn state() -> Reading {
    Reading::Fresh(Arc::new(State {
        at: Duration::ZERO,
        engine: EngineSample {
            running: Some(100),
            ..EngineSample::default()
        },
        device: DeviceSample::default(),
        memory: Memory::new(300_000, 1_000_000, Unit::KvTokens),
        idle_ms: 0.0,
        steps_per_second: Some(50.0),
    }))
}

/// A judge by the default file that has seen 200 requests of the model `m`.
///
/// # Panics
/// Never: the default file is well.
#[must_use]
pub fn judge() -> Judge {
    let settings = file::parse(file::DEFAULT).expect("the default file");
    let mut judge = Judge::new(settings, SIZE);
    judge.observe(Duration::ZERO, &state());
    let gold = judge.settings().classes.choose(None, Some("gold"), "m");
    for n in 0..200 {
        let at = Duration::from_millis(10 * n);
        let profile = judge.profile("m", gold, 100 + n, Some(200));
        let mut inside = judge.enters(at, profile, 0.0, 0);
        judge.first_token(at + Duration::from_millis(50), &mut inside);
        judge.ended(at + Duration::from_millis(900), inside, Some(100));
    }
    judge
}
