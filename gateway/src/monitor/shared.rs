//! What is known of one worker, under its locks, and what all workers have in common.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::ratio::Ratios;
use super::state::State;
use super::table::Table;

/// One worker, as whatever watches it and whatever it holds see it.
#[derive(Debug)]
pub(super) struct Shared {
    pub id: u64,
    pub worker_type: &'static str,
    pub settings: Arc<Common>,
    pub state: Mutex<State>,
    pub models: Mutex<BTreeSet<String>>,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn models(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all workers have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub load_ttl: Duration,
    pub block_size: u32,
    pub track_output_blocks: bool,
    pub table: Table,
    pub ratios: Ratios,
    /// Something is known that may make room somewhere.
    pub news: Notify,
}
