//! By how much counts grew from one reading to another.

use std::time::Duration;

use super::front::Front;
use super::gate::Gate;
use super::reading::Reading;

/// Two readings, and the time between them.
pub(super) struct Span<'r> {
    pub(super) then: &'r Reading,
    pub(super) now: &'r Reading,
    seconds: f64,
}

impl<'r> Span<'r> {
    pub(super) fn new(then: &'r (Duration, Reading), now: &'r (Duration, Reading)) -> Self {
        Self {
            seconds: now.0.saturating_sub(then.0).as_secs_f64(),
            then: &then.1,
            now: &now.1,
        }
    }

    /// By how much a count of the gates grew. One that was started anew or that
    /// was not read before has not grown.
    pub(super) fn grown(&self, count: impl Fn(&Gate) -> u64) -> u64 {
        let grown = self
            .gates()
            .map(|(then, now)| count(now).saturating_sub(count(then)));
        grown.fold(0, u64::saturating_add)
    }

    pub(super) fn grown_front(&self, count: impl Fn(&Front) -> u64) -> u64 {
        let both = self.then.front.as_ref().zip(self.now.front.as_ref());
        both.map_or(0, |(then, now)| count(now).saturating_sub(count(then)))
    }

    pub(super) fn gates(&self) -> impl Iterator<Item = (&Gate, &Gate)> {
        self.now.gates.iter().filter_map(|now| {
            let same = |then: &&Gate| then.worker == now.worker;
            Some((self.then.gates.iter().find(same)?, now))
        })
    }

    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 {
            count as f64 / self.seconds
        } else {
            0.0
        }
    }
}
