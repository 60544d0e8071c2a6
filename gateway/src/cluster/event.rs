//! What workers say: who they are, and how much they have to do.
//!
//! Fields that a reader does not know it passes over, and those that it misses it takes
//! as not told, so that versions can stand side by side.

use serde::{Deserialize, Serialize};

use super::name::WorkerName;

/// The version of what is said. Another one says something that cannot be understood
/// as this.
pub const VERSION: u32 = 1;

/// Which start of a worker, and which of its words: later ones are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn {
    /// The start: milliseconds since 1970, or more if an earlier start said more.
    pub incarnation: u64,
    /// Counts what was said since then.
    pub sequence: u64,
}

/// A worker's announcement of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announcement {
    /// [`VERSION`].
    pub v: u32,
    /// Its name.
    pub worker: WorkerName,
    /// When it says so.
    #[serde(flatten)]
    pub turn: Turn,
    /// Where requests go.
    pub url: String,
    /// Milliseconds after which it is taken for dead unless it has said something.
    pub ttl_ms: u64,
    /// It shuts down: no more requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// `prefill`, `decode` or `aggregated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_type: Option<String>,
    /// The models that it serves, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Its ranks, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// Its limits per rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What Dynamo calls the engine in its own load events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamo_worker_id: Option<u64>,
}

/// A gate's limits, each per rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests in the engine.
    pub engine_request_limit: u32,
    /// Those of them that wait for their first token.
    pub engine_request_waiting_limit: u32,
    /// Requests in the queue.
    pub request_queue_limit: u32,
}

/// A worker's load at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadEvent {
    /// [`VERSION`].
    pub v: u32,
    /// Its name.
    pub worker: WorkerName,
    /// When it says so.
    #[serde(flatten)]
    pub turn: Turn,
    /// Milliseconds since the worker's start, by a clock that is never set.
    pub uptime_ms: u64,
    /// Whether its gate could admit or queue another request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<bool>,
    /// Each of its ranks once, and at most one entry of no rank.
    pub ranks: Vec<RankLoad>,
}

/// One rank's load. What is not known is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLoad {
    /// Which; left out for requests of no rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Requests in the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
    /// Requests before it, in the gate's queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// KV blocks that a scheduler counts as active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_decode_blocks: Option<u64>,
    /// Prompt tokens whose first output token has not come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_prefill_tokens: Option<u64>,
    /// KV blocks that the engine holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_used_blocks: Option<u64>,
    /// KV blocks in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_total_blocks: Option<u64>,
    /// Tokens in one step, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_num_batched_tokens: Option<u64>,
}
