//! What workers say, as bytes: JSON, so that `nats sub` shows it. Reading is bounded, and
//! whatever is not usable is told by why.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::event::{Announcement, LoadEvent, VERSION};
use super::name::WorkerName;

/// The most bytes in one message: a load event of 1024 ranks has 200,000.
const LARGEST: usize = 256 << 10;

/// The most ranks that a worker may have.
const MOST_RANKS: usize = 1024;

/// The most models that it may name, and bytes in one's name.
const MOST_MODELS: usize = 1000;
const LONGEST_MODEL: usize = 256;

/// The largest count that is believed: what a float holds exactly.
const MOST: u64 = 1 << 53;

/// How long a member may ask to be taken for alive.
pub const SHORTEST_TTL: Duration = Duration::from_millis(300);
/// See [`SHORTEST_TTL`].
pub const LONGEST_TTL: Duration = Duration::from_secs(60);

/// Why a message is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// It is too long to be read.
    #[error("more than {LARGEST} bytes")]
    TooLarge,
    /// It is not what it should be.
    #[error("not a message of this kind")]
    Malformed,
    /// It is of a version that is not known.
    #[error("of another version than {VERSION}")]
    Version,
    /// It is about another worker than its subject says.
    #[error("about another worker than its subject says")]
    OtherName,
    /// A value is out of its range.
    #[error("with a value out of its range")]
    Range,
}

/// What any version has; the rest of it may be anything.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

/// The bytes of something that is said.
#[must_use]
pub fn encode(said: &impl serde::Serialize) -> Vec<u8> {
    // Numbers, texts and lists of them: there is nothing that could fail.
    serde_json::to_vec(said).unwrap_or_default()
}

/// Reads an announcement of the worker `of`.
///
/// # Errors
/// When it is not usable.
pub fn announcement(bytes: &[u8], of: &WorkerName) -> Result<Announcement, Unusable> {
    let said: Announcement = read(bytes, |said: &Announcement| said.v)?;
    if said.worker != *of {
        return Err(Unusable::OtherName);
    }
    let ttl = Duration::from_millis(said.ttl_ms);
    let models = said.models.as_deref().unwrap_or_default();
    let named = |model: &String| (1..=LONGEST_MODEL).contains(&model.len());
    let ranks = said.ranks.as_deref();
    let usable = (SHORTEST_TTL..=LONGEST_TTL).contains(&ttl)
        && models.len() <= MOST_MODELS
        && models.iter().all(named)
        && ranks.is_none_or(|ranks| (1..=MOST_RANKS).contains(&ranks.len()));
    let distinct = |ranks: &[u32]| ranks.iter().collect::<BTreeSet<_>>().len() == ranks.len();
    (usable && ranks.is_none_or(distinct))
        .then_some(said)
        .ok_or(Unusable::Range)
}

/// Reads a load event of the worker `of`.
///
/// # Errors
/// When it is not usable. Ranks that the worker does not have are not known here.
pub fn load(bytes: &[u8], of: &WorkerName) -> Result<LoadEvent, Unusable> {
    let said: LoadEvent = read(bytes, |said: &LoadEvent| said.v)?;
    if said.worker != *of {
        return Err(Unusable::OtherName);
    }
    let counts = said.ranks.iter().flat_map(|rank| {
        [
            rank.running,
            rank.queued,
            rank.active_decode_blocks,
            rank.active_prefill_tokens,
            rank.kv_used_blocks,
            rank.kv_total_blocks,
            rank.max_num_batched_tokens,
        ]
    });
    let believed = counts.flatten().all(|count| count <= MOST);
    let ids: BTreeSet<Option<u32>> = said.ranks.iter().map(|rank| rank.rank).collect();
    let once = ids.len() == said.ranks.len() && ids.len() <= MOST_RANKS + 1;
    (believed && once).then_some(said).ok_or(Unusable::Range)
}

fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8], v: fn(&T) -> u32) -> Result<T, Unusable> {
    if bytes.len() > LARGEST {
        return Err(Unusable::TooLarge);
    }
    let said: T = serde_json::from_slice(bytes).map_err(|_| why(bytes))?;
    if v(&said) != VERSION {
        return Err(Unusable::Version);
    }
    Ok(said)
}

/// Why it could not be read.
fn why(bytes: &[u8]) -> Unusable {
    match serde_json::from_slice(bytes) {
        Ok(Versioned { v }) if v != VERSION => Unusable::Version,
        _ => Unusable::Malformed,
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
