//! What the router reads of a worker.

/// Which of a worker's ranks are busy by a model's thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Whether all of them are.
    pub worker: bool,
    /// Those that are, in order.
    pub ranks: Vec<u32>,
}

/// A worker's load, as far as it is known now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that the worker has, waiting ones included: what it tells, or those
    /// that this frontend has sent it if they are more.
    pub running: u64,
    /// Its ranks, in order; at least one.
    pub ranks: Vec<RankLoad>,
}

/// One rank's load. Counts are the largest that a source that is not too old
/// tells, or the own accounting has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankLoad {
    /// The rank.
    pub rank: u32,
    /// KV blocks in use.
    pub active_decode_blocks: u64,
    /// Prompt tokens whose first output token has not come.
    pub active_prefill_tokens: u64,
    /// Requests, waiting ones included.
    pub running: u64,
    /// KV blocks in all, if known.
    pub kv_total_blocks: Option<u64>,
    /// Tokens in one step of the engine at most, if known.
    pub max_num_batched_tokens: Option<u64>,
}
