//! Who gets a request, of those that may have it, and what the picker is shown.

use std::sync::Arc;

use tokio::time::Instant;

use super::eligible::Free;
use super::member::Member;
use super::pick::{Candidate, Choice, Picker};

/// Picks one of those that may have the request, and takes it from them.
pub(super) fn pick(
    picker: &Picker,
    free: &mut Vec<Free>,
    rank: Option<u32>,
    now: Instant,
) -> Option<(Arc<Member>, Choice)> {
    let loads = picker.needs_load();
    let candidates: Vec<Candidate> = free
        .iter()
        .map(|free| candidate(free, loads, now))
        .collect();
    let choice = picker.pick(&candidates, rank)?;
    Some((free.remove(choice.at).member, choice))
}

fn candidate(free: &Free, loads: bool, now: Instant) -> Candidate {
    let member = &free.member;
    let id = member.id;
    if !loads {
        return Candidate {
            id,
            ..Candidate::default()
        };
    }
    let load = member.watched.load();
    let known = member.known();
    let avoid = load.ranks.iter().map(|rank| rank.rank);
    let avoid = avoid
        .filter(|rank| free.busy_ranks.contains(rank) || known.mark.avoids(*rank, now))
        .collect();
    Candidate { id, load, avoid }
}
