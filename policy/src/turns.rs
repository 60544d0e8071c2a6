//! Periods in turn: what is kept of this one and of the one before covers the last one to
//! two of them, and takes no more room however long it goes on.

use std::time::Duration;

/// Tells when a period is over.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    period: Duration,
    began: Duration,
}

impl Turns {
    /// The first period begins now.
    #[must_use]
    pub fn new(period: Duration, now: Duration) -> Self {
        Turns { period, began: now }
    }

    /// How long a period is.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How many periods are over since this was last asked, 2 for more: then the one
    /// before counts for nothing either, and a new one begins now. A clock that jumped back
    /// begins the period anew.
    pub fn over(&mut self, now: Duration) -> usize {
        let Some(since) = now.checked_sub(self.began) else {
            self.began = now;
            return 0;
        };
        if since < self.period {
            return 0;
        }
        self.began = now;
        match since >= self.period.saturating_mul(2) {
            true => 2,
            false => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_over_once_and_two_at_most() {
        let at = Duration::from_secs;
        let mut turns = Turns::new(at(10), at(0));
        assert_eq!([9, 10, 19, 20].map(|now| turns.over(at(now))), [0, 1, 0, 1]);
        assert_eq!(turns.over(at(500)), 2);
        assert_eq!([400, 409, 410].map(|now| turns.over(at(now))), [0, 0, 1]);
    }
}
