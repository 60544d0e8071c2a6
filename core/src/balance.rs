//! Moving the limits.
//!
//! A limit that shrinks takes the own room of each share at once, and tokens as
//! far as any lie free: nobody who takes one meanwhile takes more than the old
//! limit allowed. What is then still in existence above the new limit is held by
//! requests, and is destroyed as they give it back: the *debt*. Until it is paid
//! more runs than may, and the turn keeps the gate shut (`I`).

use crate::budget::{Budget, Flags};
use crate::share::{Share, share};
use crate::word::{Delta, I, Kind, L, Word};

impl Budget {
    /// Limits in force, per rank: running and waiting.
    pub(crate) fn engine_limits(&self) -> (u32, u32) {
        let of = |kind| self.limits.get(kind);
        (of(Kind::Running), of(Kind::Waiting))
    }

    /// What the limits allow the worker.
    fn capacity(&self, kind: Kind) -> u64 {
        self.len() as u64 * u64::from(self.limits.get(kind))
    }

    /// Tokens in existence above what the limits allow: held by requests, or in
    /// the hand of a call in progress.
    pub(crate) fn debt(&self, kind: Kind) -> u64 {
        u64::from(self.tokens.read().of(kind)).saturating_sub(self.capacity(kind))
    }

    /// What the worker's limit leaves, read one after another.
    pub(crate) fn room(&self, kind: Kind) -> i64 {
        self.free(kind) - self.debt(kind) as i64
    }

    /// The kind of which at one moment of this call the worker's limit was reached.
    pub(crate) fn full(&self) -> Option<Kind> {
        let owed = || {
            [Kind::Running, Kind::Waiting]
                .into_iter()
                .find(|kind| self.all_is_owed(*kind))
        };
        self.empty().or_else(owed)
    }

    /// Whether there is a debt, and no more lies free than it.
    fn all_is_owed(&self, kind: Kind) -> bool {
        loop {
            let before = (self.tokens.read(), self.capacity(kind));
            let debt = self.debt(kind);
            if debt == 0 {
                return false;
            }
            let free = self.free(kind);
            // The turn lowers both: what it had destroyed meanwhile is in neither.
            if (self.tokens.read(), self.capacity(kind)) == before {
                return free <= debt as i64;
            }
        }
    }

    /// What the worker holds, running and waiting, tokens in the hands of calls in
    /// progress included.
    pub(crate) fn held(&self) -> (i64, i64) {
        let tokens = self.tokens.read();
        let all = |kind| i64::from(tokens.of(kind));
        let all = (all(Kind::Running), all(Kind::Waiting));
        self.shares().fold(all, |(running, waiting), share| {
            let word = share.load();
            let free = |kind| i64::from(word.free(kind));
            (running - free(Kind::Running), waiting - free(Kind::Waiting))
        })
    }

    /// Destroys the token in the caller's hand if there are too many.
    #[cold]
    pub(crate) fn pay_debt(&self, kind: Kind) -> bool {
        self.tokens.destroy_above(kind, self.capacity(kind))
    }

    /// Moves the limits. The turn's alone.
    pub(crate) fn resize(&self, running: u32, waiting: u32) {
        self.move_own(Kind::Running, running, self.len());
        self.move_own(Kind::Waiting, waiting, self.len());
        self.balance_or_shut();
    }

    /// Where something is owed, nobody enters on what is given back from here on.
    fn balance_or_shut(&self) {
        if self.balance().is_some() {
            self.set_everywhere(I);
        }
    }

    /// The own limits of the first `shares`, each at one moment. The limit that tells what
    /// is owed is never ahead of the own rooms: a token that no share has room
    /// for is one too many.
    fn move_own(&self, kind: Kind, limit: u32, shares: usize) {
        let by = i64::from(limit) - i64::from(self.limits.get(kind));
        if by < 0 {
            self.limits.set(kind, limit);
        }
        for share in self.shares().take(shares) {
            if by < 0 {
                let by = by.unsigned_abs() as u32;
                self.tokens.destroy(kind, || share.shrink(kind, by));
            } else {
                share.add(Delta::room(kind, by));
            }
        }
        if by > 0 {
            self.limits.set(kind, limit);
        }
    }

    /// Makes the tokens that are missing, and destroys those above the limits
    /// that lie free; of which kind more is owed than does. The turn's alone.
    pub(crate) fn balance(&self) -> Option<Kind> {
        self.balance_and_tell(&mut |_| ())
    }

    /// The same; `told` hears of tokens that were made.
    pub(crate) fn balance_and_tell(&self, told: &mut impl FnMut(Flags)) -> Option<Kind> {
        let kinds = [Kind::Running, Kind::Waiting];
        // Both, though one is owed: what the other lacks is not that one's.
        let settled = kinds.map(|kind| self.balance_kind(kind, told));
        kinds
            .into_iter()
            .zip(settled)
            .find_map(|(kind, settled)| (!settled).then_some(kind))
    }

    /// True if nothing is owed.
    fn balance_kind(&self, kind: Kind, told: &mut impl FnMut(Flags)) -> bool {
        loop {
            let missing = self.capacity(kind) as i64 - i64::from(self.tokens.read().of(kind));
            if missing == 0 {
                return true;
            }
            match u32::try_from(missing) {
                Ok(missing) => {
                    self.tokens.make(kind, missing, || self.fill(kind, missing));
                    told(Word::only(L));
                }
                Err(_) => {
                    let owed = missing.unsigned_abs() as u32;
                    if self.tokens.destroy(kind, || self.drain(kind, owed)) == 0 {
                        return false;
                    }
                }
            }
        }
    }

    /// Puts down so many tokens. There is a place for each, see [`put`](Self::put).
    fn fill(&self, kind: Kind, mut many: u32) {
        while many > 0 {
            for share in self.shares() {
                many -= share.fill(kind, many);
            }
        }
    }

    /// Takes up to so many tokens; how many.
    fn drain(&self, kind: Kind, most: u32) -> u32 {
        self.shares().fold(0, |taken, share| {
            let more = most - taken;
            taken + share.drain(kind, more)
        })
    }

    /// The engine reported more ranks than one: these are the others' shares, full.
    /// Only then the first gives up what it had for all. The turn's alone, once.
    pub(crate) fn split(&self, rest: Box<[Share]>, running: u32, waiting: u32) {
        let others = rest.len() as u32;
        self.tokens.make(Kind::Running, others * running, || ());
        self.tokens.make(Kind::Waiting, others * waiting, || ());
        self.rest.publish(rest);
        self.move_own(Kind::Running, running, 1);
        self.move_own(Kind::Waiting, waiting, 1);
        self.balance_or_shut();
    }
}

/// The shares of so many ranks, for [`Budget::split`], allocated before its turn.
/// They are shut until the turn has seen who is queued.
pub(crate) fn new_shares(ranks: usize, running: u32, waiting: u32) -> Box<[Share]> {
    let new = |_| {
        let share = share((running, waiting), (running, waiting));
        share.set(I);
        share
    };
    (0..ranks).map(new).collect()
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::word::step::Who;

    fn room(budget: &Budget) -> [i64; 2] {
        [Kind::Running, Kind::Waiting].map(|kind| budget.room(kind))
    }

    #[test]
    fn a_debt_of_one_kind_keeps_back_nothing_of_the_other() {
        let budget = Budget::new(3, 3);
        for _ in 0..3 {
            budget.share(0).enter(Who::Newcomer).unwrap();
            budget.share(0).add(Delta::ranked(Kind::Waiting));
        }
        budget.resize(1, 1);
        assert_eq!(room(&budget), [-2, 1]);
        budget.resize(1, 3);
        assert_eq!(room(&budget), [-2, 3]);
        assert_eq!(budget.balance(), Some(Kind::Running));
        budget.resize(4, 2);
        assert_eq!(room(&budget), [1, 2]);
        assert_eq!(budget.balance(), None);
    }
}
