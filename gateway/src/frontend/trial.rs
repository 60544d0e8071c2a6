//! How many requests a worker that refused gets at once, of those that a policy holds.
//!
//! When a mark ends, everyone who is held could go to that worker, which is likely
//! to have room for a few. So one goes first, and then one more for each that it began
//! to answer, and for each that ended there: what it left is free. A worker that never
//! refused gets any number.

/// The trial of one worker: a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trial {
    /// How many may be without an answer; `None` is any number.
    most: Option<u32>,
    /// How many are.
    unanswered: u32,
}

impl Trial {
    /// Whether it may get another one.
    pub(super) fn has_room(self) -> bool {
        self.most.is_none_or(|most| self.unanswered < most)
    }

    /// It gets one.
    pub(super) fn sent(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// What became of that one is known.
    pub(super) fn over(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// It began to answer one, or one ended.
    pub(super) fn one_more(&mut self) {
        self.most = self.most.map(|most| most.saturating_add(1));
    }

    /// It has no room for anyone.
    pub(super) fn refused(&mut self) {
        self.most = Some(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_first_after_a_refusal_and_each_answer_lets_one_more_in() {
        let mut trial = Trial::default();
        (0..1_000).for_each(|_| trial.sent());
        assert!(trial.has_room(), "it never refused");
        trial.refused();
        assert!(!trial.has_room());
        (0..1_000).for_each(|_| trial.over());
        assert!(trial.has_room());
        trial.sent();
        assert!(!trial.has_room());
        trial.one_more();
        trial.over();
        trial.sent();
        assert!(trial.has_room(), "two at a time now");
        trial.sent();
        assert!(!trial.has_room());
        trial.refused();
        trial.over();
        assert!(!trial.has_room(), "one is without an answer still");
        trial.over();
        trial.over();
        assert!(trial.has_room());
    }
}
