//! Anyone.

use super::Candidate;

/// The one that `draw` falls on, which is from 0 (included) to 1. There must be one.
#[must_use]
pub fn at(candidates: &[Candidate], draw: f64) -> usize {
    let last = candidates.len().saturating_sub(1);
    // A draw in range never exceeds it; rounding might.
    ((draw * candidates.len() as f64) as usize).min(last)
}
