//! Whether a worker is well, from what checks and requests say of it.

/// Checks in a row that must fail before a worker that was well is left out.
const FAILURES: u32 = 2;

/// What is known of a worker's health. Nothing is known at first: it is left out
/// until it has answered once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    well: bool,
    failures: u32,
}

impl Health {
    /// Whether requests may go there.
    #[must_use]
    pub fn is_well(self) -> bool {
        self.well
    }

    /// It has answered a check: it is back at once. Whether that is news.
    pub fn answered(&mut self) -> bool {
        let news = !self.well;
        *self = Self {
            well: true,
            failures: 0,
        };
        news
    }

    /// A check failed in a way that may pass: too slow, or an error. Whether it is
    /// left out from now on.
    pub fn failed(&mut self) -> bool {
        self.failures = self.failures.saturating_add(1);
        let news = self.well && self.failures >= FAILURES;
        self.well = self.well && self.failures < FAILURES;
        news
    }

    /// Nobody is there: no connection. Whether it is left out from now on.
    pub fn unreachable(&mut self) -> bool {
        self.failures = FAILURES;
        std::mem::replace(&mut self.well, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_a_worker_that_has_not_answered() {
        let mut health = Health::default();
        assert!(!health.is_well());
        assert!(!health.failed());
        assert!(health.answered());
        assert!(health.is_well());
        assert!(!health.answered());
    }

    #[test]
    fn one_slow_answer_is_forgiven_two_in_a_row_are_not() {
        let mut health = Health::default();
        health.answered();
        assert!(!health.failed());
        health.answered();
        assert!(!health.failed());
        assert!(health.is_well());
        assert!(health.failed());
        assert!(!health.is_well());
        assert!(!health.failed());
    }

    #[test]
    fn no_connection_is_enough_and_one_answer_brings_it_back() {
        let mut health = Health::default();
        health.answered();
        assert!(health.unreachable());
        assert!(!health.unreachable());
        assert!(!health.is_well());
        assert!(health.answered());
        assert!(!health.failed());
        assert!(health.is_well());
    }
}
