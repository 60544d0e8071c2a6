//! Who has the fewest requests.

use super::Candidate;

/// The one with the fewest requests; of equals, the first from `start` on. There
/// must be one.
#[must_use]
pub fn least(candidates: &[Candidate], start: usize) -> usize {
    let count = candidates.len();
    (0..count)
        .map(|step| (start + step) % count)
        .min_by_key(|&at| candidates[at].load.running)
        .unwrap_or(start)
}
