//! What a worker's refusals say of it for a moment. Time is passed in.

use std::time::Duration;

use tokio::time::Instant;

/// How long a refusal counts at most, unless something else is set.
pub const OUT: Duration = Duration::from_secs(1);

/// How far a refusal reaches, as `x-admission-scope` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The worker has no room for anyone.
    Worker,
    /// This rank has none, if it said which; others may.
    Rank(Option<u32>),
    /// The request's class has none, or whoever says something newer.
    Class,
}

/// The newest refusals of one worker.
#[derive(Clone, Debug)]
pub struct Mark {
    /// How long each counts.
    time: Duration,
    worker: Option<Instant>,
    ranks: Vec<(u32, Instant)>,
}

impl Mark {
    /// No refusal yet; each will count for `time`.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self {
            time,
            worker: None,
            ranks: Vec::new(),
        }
    }

    /// It refused at `now`. That arms the mark anew.
    pub fn refused(&mut self, scope: Scope, now: Instant) {
        match scope {
            Scope::Worker => self.worker = Some(now),
            Scope::Rank(Some(rank)) => {
                let time = self.time;
                self.ranks
                    .retain(|(other, at)| *other != rank && counts(*at, now, time));
                self.ranks.push((rank, now));
            }
            Scope::Rank(None) | Scope::Class => {}
        }
    }

    /// Whether it is out at `now`. `free` is the moment of which a load sample last
    /// said that it can take more: that ends a mark from before.
    #[must_use]
    pub fn is_out(&self, now: Instant, free: Option<Instant>) -> bool {
        self.worker
            .is_some_and(|at| counts(at, now, self.time) && free.is_none_or(|free| free <= at))
    }

    /// When it is back at the latest, if it is out at `now`.
    #[must_use]
    pub fn ends(&self, now: Instant) -> Option<Instant> {
        let refused = self.worker.filter(|at| counts(*at, now, self.time))?;
        refused.checked_add(self.time)
    }

    /// Whether this rank refused a moment ago. The worker stays in; a router that
    /// chooses ranks had better choose another.
    #[must_use]
    pub fn avoids(&self, rank: u32, now: Instant) -> bool {
        let mut ranks = self.ranks.iter();
        ranks.any(|(refused, at)| *refused == rank && counts(*at, now, self.time))
    }
}

fn counts(at: Instant, now: Instant, time: Duration) -> bool {
    now.saturating_duration_since(at) < time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_worker_is_out_for_a_second_and_longer_if_it_refuses_again() {
        let (mut mark, start) = (Mark::new(OUT), Instant::now());
        assert!(!mark.is_out(start, None));
        mark.refused(Scope::Worker, start);
        assert!(mark.is_out(at(start, 999), None));
        assert!(!mark.is_out(at(start, 1000), None));
        mark.refused(Scope::Worker, at(start, 900));
        assert!(mark.is_out(at(start, 1899), None));
        assert!(!mark.is_out(at(start, 1900), None));
    }

    #[test]
    fn a_sample_that_says_free_ends_it_and_an_older_one_does_not() {
        let (mut mark, start) = (Mark::new(OUT), Instant::now());
        mark.refused(Scope::Worker, at(start, 100));
        let now = at(start, 200);
        assert!(mark.is_out(now, Some(start)));
        assert!(mark.is_out(now, Some(at(start, 100))));
        assert!(!mark.is_out(now, Some(at(start, 101))));
    }

    #[test]
    fn ranks_and_classes_leave_the_worker_in() {
        let (mut mark, start) = (Mark::new(OUT), Instant::now());
        for scope in [Scope::Rank(Some(4)), Scope::Rank(None), Scope::Class] {
            mark.refused(scope, start);
        }
        assert!(!mark.is_out(start, None));
        assert!(mark.avoids(4, at(start, 999)));
        assert!(!mark.avoids(4, at(start, 1000)));
        assert!(!mark.avoids(5, start));
    }

    #[test]
    fn ranks_that_are_long_forgotten_take_no_room() {
        let (mut mark, start) = (Mark::new(OUT), Instant::now());
        for rank in 0..10_000 {
            let now = at(start, u64::from(rank) * 10);
            mark.refused(Scope::Rank(Some(rank)), now);
            mark.refused(Scope::Rank(Some(rank)), now);
        }
        assert!(mark.ranks.len() <= 101, "{}", mark.ranks.len());
    }
}
