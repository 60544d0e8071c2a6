//! What is said of one rank's load, and who says it.

/// Who says something of a worker's load. What one says stands beside what the
/// others say, and takes nothing of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The worker's metrics page, read now and then.
    Scrape,
    /// Events that the worker sends.
    Events,
    /// Events that Dynamo sends for it.
    Dynamo,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scrape, Self::Events, Self::Dynamo];

    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Events => "events",
            Self::Dynamo => "dynamo",
        }
    }
}

/// One rank's load at one moment. What the source does not tell is `None`, and
/// leaves what it told before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// KV blocks that the scheduler counts as active.
    pub active_decode_blocks: Option<u64>,
    /// KV blocks that the engine holds.
    pub kv_used_blocks: Option<u64>,
    /// Prompt tokens that wait for their first output token.
    pub active_prefill_tokens: Option<u64>,
    /// Requests in the engine.
    pub running: Option<u64>,
    /// Requests that wait for it, in the engine or before it.
    pub waiting: Option<u64>,
    /// How large the rank is.
    pub totals: Totals,
}

/// How large a rank is. 0 counts as not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// KV blocks in all.
    pub kv_total_blocks: Option<u64>,
    /// Tokens in one step of the engine, at most.
    pub max_num_batched_tokens: Option<u64>,
    /// Tokens in one KV block.
    pub block_size: Option<u32>,
}

impl Totals {
    /// These, and for what they do not tell, `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        fn told<N: PartialEq + From<u8>>(number: Option<N>) -> Option<N> {
            number.filter(|number| *number != N::from(0))
        }
        Self {
            kv_total_blocks: told(self.kv_total_blocks).or(told(others.kv_total_blocks)),
            max_num_batched_tokens: told(self.max_num_batched_tokens)
                .or(told(others.max_num_batched_tokens)),
            block_size: told(self.block_size).or(told(others.block_size)),
        }
    }
}
