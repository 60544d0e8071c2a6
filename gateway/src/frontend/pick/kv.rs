//! The rank with the least work on it.
//!
//! Work is counted in KV blocks: those in use, and those of prompts that are still to
//! be read, which use the engine's time as well. The request would add the same
//! anywhere, so it is left out.

use super::{Candidate, Choice};
use crate::monitor::RankLoad;

/// The rank with the least work on it, and its worker; of equals, the one with fewer
/// requests, then the first from `start` on. A rank that is to be left alone is
/// taken only where all are. With `named` the client chose the rank, and its work is
/// what counts, or the worker's least where that rank is not known. There must be a
/// candidate.
///
/// A rank is told only to workers that have more than one.
#[must_use]
pub fn least(
    candidates: &[Candidate],
    start: usize,
    named: Option<u32>,
    block_size: u32,
) -> Choice {
    let count = candidates.len();
    (0..count)
        .map(|step| (start + step) % count)
        .map(|at| (at, of(&candidates[at], named, block_size)))
        .min_by_key(|(_, (work, _))| *work)
        .map_or(Choice::of(start), |(at, (_, rank))| Choice { at, rank })
}

/// Avoided or not, blocks, requests: what is compared, in this order.
type Work = (bool, u64, u64);

/// A candidate's best rank, and the work on it.
fn of(candidate: &Candidate, named: Option<u32>, block_size: u32) -> (Work, Option<u32>) {
    let ranks = &candidate.load.ranks;
    let known = ranks.iter().any(|rank| Some(rank.rank) == named);
    let best = ranks
        .iter()
        .filter(|rank| !known || Some(rank.rank) == named)
        .map(|rank| (work(candidate, rank, block_size), rank.rank))
        .min();
    match best {
        Some((work, rank)) => {
            let told = named.is_none() && ranks.len() > 1;
            (work, told.then_some(rank))
        }
        None => ((false, 0, candidate.load.running), None),
    }
}

fn work(candidate: &Candidate, rank: &RankLoad, block_size: u32) -> Work {
    let prompts = rank.active_prefill_tokens.div_ceil(u64::from(block_size));
    let blocks = rank.active_decode_blocks.saturating_add(prompts);
    (candidate.avoid.contains(&rank.rank), blocks, rank.running)
}
