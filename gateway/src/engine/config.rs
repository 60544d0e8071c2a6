//! What an engine is started with.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::batch::BatchConfig;
use super::misbehave::Misbehave;

/// Everything an engine is started with. `Default` is one fast-starting H100
/// with Llama-2-7B on a free port of the loopback interface, in real time.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The one model served.
    pub model: String,
    /// Data-parallel ranks, 1 to 1024.
    pub ranks: u32,
    /// Id of the first rank; the others follow it.
    pub first_rank: u32,
    /// The limits of each rank, all at least 1.
    pub batch: BatchConfig,
    /// Virtual seconds per second, finite and above 0.
    pub speed: f64,
    /// Seeds output lengths, text and the choice of requests that misbehave.
    pub seed: u64,
    /// For how long after the start everything but `/metrics` and
    /// `/v1/models` answers 503, as while a model loads.
    pub startup_delay: Duration,
    /// What befalls a share of the requests.
    pub misbehave: Option<Misbehave>,
    /// That share, from 0 to 1.
    pub misbehave_rate: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            model: "sim".to_owned(),
            ranks: 1,
            first_rank: 0,
            batch: BatchConfig::default(),
            speed: 1.0,
            seed: 0,
            startup_delay: Duration::ZERO,
            misbehave: None,
            misbehave_rate: 1.0,
        }
    }
}

impl EngineConfig {
    pub(super) fn rank_ids(&self) -> impl Iterator<Item = u32> {
        (0..self.ranks).map(|n| self.first_rank.wrapping_add(n))
    }

    /// # Errors
    /// `InvalidInput`, naming the setting and what it accepts.
    pub(super) fn check(&self) -> io::Result<()> {
        let batch = &self.batch;
        let wrong = if !(1..=1024).contains(&self.ranks) {
            "ranks must be 1 to 1024"
        } else if self.first_rank.checked_add(self.ranks - 1).is_none() {
            "the last rank's id does not fit in 32 bits"
        } else if batch.max_num_seqs == 0 || batch.kv_blocks == 0 || batch.block_size == 0 {
            "max_num_seqs, kv_blocks and block_size must be at least 1"
        } else if batch.max_num_batched_tokens < batch.max_num_seqs {
            "max_num_batched_tokens must be at least max_num_seqs"
        } else if !(self.speed.is_finite() && self.speed >= 1e-3) {
            "speed must be a finite number of at least 0.001"
        } else if !(0.0..=1.0).contains(&self.misbehave_rate) {
            "misbehave_rate must be 0 to 1"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, wrong))
    }
}
