//! Offered load from little to far too much.
//!
//! The load is told as a multiple of what is *sustainable*: the requests per
//! second that the engine completes when it always has the next request at hand
//! and its cache is three quarters full. Below 1 everything could be served; above,
//! something has to give, and what gives is what an admission control decides.

use std::collections::HashMap;
use std::time::Duration;

use super::report::Report;
use super::way_in::WayIn;
use super::workload::Workload;
use super::world::{Setup, simulate};
use crate::engine::batch::{Batch, BatchConfig, Work};

/// One load, and what became of it.
#[derive(Clone, Debug)]
pub struct Point {
    /// Offered load, as a multiple of the sustainable one.
    pub load: f64,
    /// Offered load, in requests per second.
    pub rate: f64,
    /// What became of the requests.
    pub report: Report,
}

/// How long requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Until the setup's end.
    Fixed,
    /// Until a recording has come by once, whatever the rate: its lengths change as it
    /// goes on, and loads that see different parts of it cannot be compared. Generated
    /// requests come as for `Fixed`.
    Recording,
}

/// Requests of this workload that the engine completes per second in a
/// closed loop that holds as many as three quarters of the cache take: 2,000 of
/// them, or as many as are recorded if that is more.
#[must_use]
pub fn sustainable(engine: &BatchConfig, workload: &Workload, seed: u64) -> f64 {
    let requests = workload.recorded.len().max(2_000);
    // Only the lengths matter here, not when they come.
    let all = workload
        .clone()
        .at_rate(1.0)
        .generate(Duration::from_secs(2 * requests as u64), seed);
    let most = engine.max_model_len() * 3 / 4;
    let mut batch = Batch::new(engine.clone());
    let (mut held, mut tokens) = (HashMap::new(), 0);
    let (mut time, mut done) = (Duration::ZERO, 0_u32);
    let mut next = all.iter().take(requests).enumerate().peekable();
    loop {
        while let Some((id, request)) = next.peek() {
            let need = u64::from(request.prompt_tokens) + u64::from(request.output_tokens);
            if tokens + need > most && !held.is_empty() {
                break;
            }
            let work = Work {
                prompt_tokens: request.prompt_tokens,
                output_tokens: request.output_tokens,
            };
            if batch.submit(*id as u64, work).is_ok() {
                held.insert(*id as u64, need);
                tokens += need;
            }
            next.next();
        }
        // The last requests run alone: they say nothing about a full engine.
        let Some(step) = next.peek().and_then(|_| batch.step()) else {
            break;
        };
        time += step.duration;
        for id in step.finished {
            tokens -= held.remove(&id).unwrap_or(0);
            done += 1;
        }
    }
    f64::from(done) / time.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Simulates each load in turn; `progress` is told after each.
pub fn sweep(
    setup: &Setup,
    way_in: &WayIn,
    workload: &Workload,
    loads: &[f64],
    length: Length,
    seed: u64,
    mut progress: impl FnMut(&Point),
) -> Vec<Point> {
    let sustainable = sustainable(&setup.engine, workload, seed);
    let point = |load: &f64| {
        let rate = load * sustainable;
        let workload = workload.clone().at_rate(rate);
        let mut setup = setup.clone();
        if let (Length::Recording, Some(once)) = (length, workload.once()) {
            setup.until = setup.from.saturating_add(once);
        }
        let requests = workload.generate(setup.until, seed);
        let point = Point {
            load: *load,
            rate,
            report: simulate(&setup, way_in, &requests),
        };
        progress(&point);
        point
    };
    loads.iter().map(point).collect()
}
