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

    /// How many periods are over since this was last asked; a new one begins now if any is.
    /// A clock that jumped back begins the period anew. A period of 0 is never over.
    pub fn over(&mut self, now: Duration) -> usize {
        let Some(since) = now.checked_sub(self.began) else {
            self.began = now;
            return 0;
        };
        let over = since.as_nanos().checked_div(self.period.as_nanos());
        let over = over.unwrap_or(0).try_into().unwrap_or(usize::MAX);
        if over > 0 {
            self.began = now;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_counted_since_the_last_that_was_over() {
        let at = Duration::from_secs;
        let mut turns = Turns::new(at(10), at(0));
        assert_eq!([9, 10, 19, 20].map(|now| turns.over(at(now))), [0, 1, 0, 1]);
        assert_eq!(turns.over(at(500)), 48);
        assert_eq!([400, 409, 410].map(|now| turns.over(at(now))), [0, 0, 1]);
        assert_eq!(Turns::new(at(0), at(0)).over(at(500)), 0);
    }
}
