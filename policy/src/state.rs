//! The state of one GPU and of the engine rank on it, as last sampled.
//!
//! A [`State`] is one immutable value. What a source does not tell is `None`,
//! and no decision is made from it.

use std::time::Duration;

use crate::memory::Memory;

/// What an engine's page says of one rank, or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EngineSample {
    /// Sequences in the batch.
    pub running: Option<u64>,
    /// Sequences waiting for the batch.
    pub waiting: Option<u64>,
    /// The KV cache.
    pub pool: Option<Memory>,
    /// A counter that moves whenever the engine works: tokens, or requests.
    pub progress: Option<f64>,
    /// Tokens generated since the engine started.
    pub generated: Option<f64>,
}

/// What a device's page says of one GPU. Shares are 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceSample {
    /// Share of the time in which a kernel ran.
    pub utilisation: Option<f64>,
    /// Share of the streaming multiprocessors that had work.
    pub sm_utilisation: Option<f64>,
    /// Share of the memory bandwidth in use.
    pub memory_bandwidth: Option<f64>,
    /// The device's memory, in bytes.
    pub memory: Option<Memory>,
}

/// One GPU at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// When it was sampled, since any fixed moment.
    pub at: Duration,
    /// The engine.
    pub engine: EngineSample,
    /// The device.
    pub device: DeviceSample,
    /// The memory to judge by, if any is known.
    pub memory: Option<Memory>,
    /// How long the engine has done nothing, in milliseconds; 0 while it works.
    pub idle_ms: f64,
    /// Steps of the engine per second, where generated tokens tell.
    pub steps_per_second: Option<f64>,
}

impl State {
    /// Requests that the engine holds, in its batch or waiting for it.
    #[must_use]
    pub fn active(&self) -> Option<u64> {
        let running = self.engine.running?;
        Some(running.saturating_add(self.engine.waiting.unwrap_or(0)))
    }
}
