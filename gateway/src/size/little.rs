//! Little's law: the limit that follows from readings.

use tidegate::Lane;

use super::reading::Reading;
use super::unusable::Unusable;
use super::window::Window;
use crate::config::ranks::show_ranks;

/// What was measured, and the limit that follows, for one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizing {
    /// The rank, if the worker's engine has reported any.
    pub rank: Option<u32>,
    /// How many ranks were looked at; this is the one with the most waiting.
    pub ranks: usize,
    /// Requests that waited for their first token, on the average of time: `L`.
    pub waiting: f64,
    /// Requests admitted a second: `C`.
    pub rate: f64,
    /// Seconds from admission to first token or completion, on average: `L / C`.
    pub mean_wait: f64,
    /// The candidate for the engine request waiting limit, per rank: `L` rounded up.
    pub limit: u64,
    /// How many readings.
    pub readings: usize,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// Requests admitted in the window.
    pub admitted: u64,
    /// Requests that left before admission.
    pub cancelled: u64,
}

/// Sizes the waiting limit of `rank`; without one, of the rank with the most
/// waiting. `readings` are of one worker, in the order of time.
///
/// # Errors
/// A window from which nothing follows, with the reason.
pub fn size(readings: &[Reading], rank: Option<u32>) -> Result<Sizing, Unusable> {
    let [first, .., last] = readings else {
        return Err(Unusable::FewReadings(readings.len()));
    };
    if readings.windows(2).any(|pair| pair[0].at > pair[1].at) || first.at == last.at {
        return Err(Unusable::Time);
    }
    if readings
        .iter()
        .any(|one| !one.lanes.keys().eq(first.lanes.keys()))
    {
        return Err(Unusable::RanksChanged);
    }
    let known: Vec<u32> = ranks(first).collect();
    if let Some(asked) = rank.filter(|asked| !known.contains(asked)) {
        let known = match known[..] {
            [] => "none; its engine has not reported".to_owned(),
            _ => show_ranks(&known),
        };
        return Err(Unusable::NoSuchRank { asked, known });
    }
    if known.len() > 1 {
        no_unranked(first, last)?;
    }
    let wanted: Vec<u32> = rank.map_or(known.clone(), |rank| vec![rank]);
    let mut windows = Vec::new();
    for lanes in lanes(&wanted, known.len(), first) {
        windows.push((lanes[0], Window::of(readings, &lanes)));
    }
    // A rank without traffic is no reason to say nothing about the others.
    let busy = windows
        .iter()
        .filter_map(|(lane, window)| Some((*lane, window.as_ref().ok()?)));
    let most = busy
        .max_by(|a, b| a.1.waiting.total_cmp(&b.1.waiting))
        .map(|(lane, most)| (lane, most.clone()));
    let idle =
        |window: &Result<Window, Unusable>| matches!(window, Err(Unusable::FewAdmissions(_)));
    let wrong = windows
        .iter()
        .find(|(_, window)| window.is_err() && (most.is_none() || !idle(window)));
    if let Some((_, Err(why))) = wrong {
        return Err(why.clone());
    }
    let Some((lane, window)) = most else {
        return Err(Unusable::FewAdmissions(0));
    };
    let rate = window.admitted as f64 / window.seconds;
    Ok(Sizing {
        rank: match lane {
            Lane::Rank(id) => Some(id),
            Lane::Unspecified => None,
        },
        ranks: windows.len(),
        waiting: window.waiting,
        rate,
        mean_wait: window.waiting / rate,
        limit: round_up(window.waiting),
        readings: readings.len(),
        seconds: window.seconds,
        admitted: window.admitted,
        cancelled: window.cancelled,
    })
}

fn ranks(reading: &Reading) -> impl Iterator<Item = u32> {
    reading.lanes.keys().filter_map(|lane| match lane {
        Lane::Rank(id) => Some(*id),
        Lane::Unspecified => None,
    })
}

/// The lanes that count as one, for each rank looked at: one rank's own, and
/// *unspecified* where there is no other rank that its requests could be at.
fn lanes(wanted: &[u32], known: usize, reading: &Reading) -> Vec<Vec<Lane>> {
    let unspecified = reading.lanes.contains_key(&Lane::Unspecified) && known < 2;
    let unspecified = unspecified.then_some(Lane::Unspecified);
    match wanted {
        [] => unspecified.map(|lane| vec![lane]).into_iter().collect(),
        ranks => {
            let of = |id: &u32| {
                std::iter::once(Lane::Rank(*id))
                    .chain(unspecified)
                    .collect()
            };
            ranks.iter().map(of).collect()
        }
    }
}

fn no_unranked(first: &Reading, last: &Reading) -> Result<(), Unusable> {
    let at = |reading: &Reading| {
        reading
            .lanes
            .get(&Lane::Unspecified)
            .copied()
            .unwrap_or_default()
    };
    let (before, after) = (at(first), at(last));
    match after.received.checked_sub(before.received) {
        None => Err(Unusable::Restarted(Lane::Unspecified)),
        Some(came) if came > 0 || before.waiting > 0 => {
            Err(Unusable::Unranked(came.max(before.waiting)))
        }
        Some(_) => Ok(()),
    }
}

/// The least whole limit, at least 1; what averaging adds in the last digits is
/// no request.
fn round_up(waiting: f64) -> u64 {
    (waiting - 1e-6).ceil().max(1.0) as u64
}

#[cfg(test)]
#[path = "little_tests.rs"]
mod tests;
