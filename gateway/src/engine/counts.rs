//! A rank's counts, as the metrics page and the tests read them.

/// What a rank holds and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankCounts {
    /// The rank's id.
    pub rank: u32,
    /// Sequences in the batch.
    pub running: usize,
    /// Sequences waiting for the batch, preempted ones included.
    pub waiting: usize,
    /// KV blocks held.
    pub kv_blocks_used: u32,
    /// KV blocks in all.
    pub kv_blocks_total: u32,
    /// Requests handed to the batch since the start.
    pub received: u64,
    /// Sequences that ran to their end since the start.
    pub finished: u64,
    /// Sequences whose client left since the start.
    pub cancelled: u64,
    /// Preemptions since the start.
    pub preemptions: u64,
    /// Tokens generated since the start.
    pub generated_tokens: u64,
}
