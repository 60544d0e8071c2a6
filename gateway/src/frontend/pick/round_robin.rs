//! Each in turn.

use super::Candidate;

/// The one after `last`, in order of ids, and the first after the end. Candidates
/// may come and go in between. There must be one.
#[must_use]
pub fn next(candidates: &[Candidate], last: Option<u64>) -> usize {
    let after = |candidate: &Candidate| last.is_none_or(|last| candidate.id > last);
    candidates.iter().position(after).unwrap_or(0)
}
