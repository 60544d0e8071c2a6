//! What the request handlers of one engine share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::config::EngineConfig;
use super::counts::RankCounts;
use super::live::Rank;
use super::metrics::Metrics;
use super::misbehave::Misbehave;

/// One engine's parts.
pub(super) struct EngineState {
    pub config: EngineConfig,
    pub ranks: Vec<Rank>,
    pub metrics: Metrics,
    pub started_unix: u64,
    ready_at: Instant,
    misbehave: Mutex<(Option<Misbehave>, f64)>,
    requests: AtomicU64,
}

impl EngineState {
    /// The state of an engine that starts now, its ranks running until `stop`.
    pub fn start(config: EngineConfig, stop: &CancellationToken) -> Self {
        let metrics = Metrics::new(&config);
        let ranks = config
            .rank_ids()
            .zip(&metrics.ranks)
            .map(|(id, m)| Rank::spawn(id, &config.batch, config.speed, m.clone(), stop.clone()))
            .collect();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = Instant::now();
        Self {
            ranks,
            metrics,
            started_unix: unix.map_or(0, |unix| unix.as_secs()),
            ready_at: now.checked_add(config.startup_delay).unwrap_or(now),
            misbehave: Mutex::new((config.misbehave, config.misbehave_rate)),
            requests: AtomicU64::new(0),
            config,
        }
    }

    pub fn ready(&self) -> bool {
        Instant::now() >= self.ready_at
    }

    pub fn counts(&self) -> Vec<RankCounts> {
        self.ranks.iter().map(Rank::counts).collect()
    }

    /// A new request's id and its seed. Relaxed: only uniqueness matters.
    pub fn next_id(&self) -> (u64, u64) {
        let id = self.requests.fetch_add(1, Relaxed);
        let seed = self.config.seed.rotate_left(32) ^ id;
        (id, seed)
    }

    /// What befalls the request of this seed, by the engine's setting.
    pub fn misbehave(&self, seed: u64) -> Option<Misbehave> {
        let (kind, rate) = *self
            .misbehave
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let drawn = StdRng::seed_from_u64(!seed).random::<f64>() < rate;
        kind.filter(|_| drawn)
    }

    /// Changes that setting, for requests to come.
    pub fn set_misbehave(&self, kind: Option<Misbehave>, rate: f64) {
        let mut setting = self
            .misbehave
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *setting = (kind, rate);
    }
}
