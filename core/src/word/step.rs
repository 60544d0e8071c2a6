//! Transitions of the share word, as pure functions: old word in, new word or
//! nothing out.
//!
//! | step | needs | a | b | f | g |
//! | --- | --- | --- | --- | --- | --- |
//! | `enter` (ranked, at home) | a, b, f, g > 0; newcomers no N, no I | -1 | -1 | -1 | -1 |
//! | `enter_shared` (unranked) | f, g > 0; newcomers no I, nor N with a, b > 0 | | | -1 | -1 |
//! | `occupy` (ranked, tokens in hand) | a, b > 0; newcomers no N, no I | -1 | -1 | | |
//! | `take` (a token into the hand) | f or g > 0; newcomers as above | | | -1 or | -1 |
//! | `drain` (the turn, when limits move) | as `take`, many at once | | | | |
//! | `fill` (the same) | f < a, or g < b | | | +n or | +n |
//! | `shrink` (the turn) | nothing | own room less; of the tokens, those it leaves no room for | | | |
//!
//! What needs nothing is a [`Delta`](super::Delta): a ranked release (a, f +1),
//! a first token (b, g +1), a change of limits; and a token from the hand (f or g +1),
//! where [`has_place`] was true at a look before.

use super::{A, B, BIAS, Delta, F, G, I, Kind, N, T, Word};

/// Whose step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Heeds the flags.
    Newcomer,
    /// Knows that it passes over nobody, whatever the flags say: the turn, for the
    /// oldest who fits, or a newcomer who has looked.
    Entitled,
}

const ONE: Delta = Delta::of(A, -1)
    .and(Delta::of(B, -1))
    .and(Delta::of(F, -1))
    .and(Delta::of(G, -1));
const ONE_SHARED: Delta = Delta::of(F, -1).and(Delta::of(G, -1));
const ONE_OWN: Delta = Delta::of(A, -1).and(Delta::of(B, -1));

const ALL_HOLD: u64 = BIAS << A | BIAS << B | BIAS << F | BIAS << G;
const SHARED_HOLD: u64 = BIAS << F | BIAS << G;
const OWN_HOLD: u64 = BIAS << A | BIAS << B;

impl Who {
    /// Of these flags, those that shut it out.
    #[inline]
    fn heeds(self, flags: u64) -> u64 {
        match self {
            Who::Newcomer => flags,
            Who::Entitled => 0,
        }
    }

    /// Whether it may have tokens that lie in another lane's word.
    #[inline]
    fn may_take(self, word: Word) -> bool {
        !word.has(self.heeds(N | I)) || !word.shuts_foreigners()
    }
}

/// A ranked request, decided on its rank's word alone.
#[inline]
pub(crate) fn enter(word: Word, who: Who) -> Option<Word> {
    let new = word + ONE;
    (new.0 & (ALL_HOLD | who.heeds(N | I)) == ALL_HOLD).then_some(new)
}

/// An unranked request, decided on the word of any one share.
#[inline]
pub(crate) fn enter_shared(word: Word, who: Who) -> Option<Word> {
    let new = word + ONE_SHARED;
    (new.0 & SHARED_HOLD == SHARED_HOLD && who.may_take(word)).then_some(new)
}

/// A ranked request that has a token of each kind in hand enters its rank.
pub(crate) fn occupy(word: Word, who: Who) -> Option<Word> {
    let new = word + ONE_OWN;
    (new.0 & (OWN_HOLD | who.heeds(N | I)) == OWN_HOLD).then_some(new)
}

/// Takes one token into the hand.
pub(crate) fn take(word: Word, kind: Kind, who: Who) -> Option<Word> {
    (word.free(kind) > 0 && who.may_take(word)).then(|| word + Delta::tokens(kind, -1))
}

/// Whether the share's own lane could use one more token.
#[inline]
pub(crate) fn has_place(word: Word, kind: Kind) -> bool {
    word.free(kind) < word.own(kind)
}

/// What the turn finds when it wants no more flags of a share than `wanted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relaxed {
    /// It has no others.
    Already,
    /// An arrival touched it: the turn looks for arrivals again before it clears any.
    Touched(Word),
    /// The others can go.
    Cleared(Word),
}

/// Clears `N` and `I` as far as they are not `wanted`, but no flag that an
/// arrival set and the turn has not accounted for.
pub(crate) fn relax(word: Word, wanted: u64) -> Relaxed {
    let others = word.0 & (N | I) & !wanted;
    if others == 0 {
        Relaxed::Already
    } else if word.has(T) {
        Relaxed::Touched(Word(word.0 & !T))
    } else {
        Relaxed::Cleared(Word(word.0 & !others))
    }
}

/// Takes up to `most` tokens at once; how many, and the word without them.
pub(crate) fn drain(word: Word, kind: Kind, most: u32) -> Option<(Word, u32)> {
    let taken = u32::try_from(word.free(kind)).unwrap_or(0).min(most);
    (taken > 0).then(|| (word + Delta::tokens(kind, -i64::from(taken)), taken))
}

/// Puts up to `most` tokens down at once where the share's own lane could use
/// them; how many, and the word with them.
pub(crate) fn fill(word: Word, kind: Kind, most: u32) -> Option<(Word, u32)> {
    let room = word.own(kind) - word.free(kind);
    let put = u32::try_from(room).unwrap_or(0).min(most);
    (put > 0).then(|| (word + Delta::tokens(kind, i64::from(put)), put))
}

/// Takes own room away, and the tokens that are then more than it; how many, and
/// the word without both.
pub(crate) fn shrink(word: Word, kind: Kind, by: u32) -> (Word, u32) {
    let left = word.own(kind) - by as i32;
    let taken = (word.free(kind) - left.max(0)).max(0);
    let smaller = Delta::room(kind, -i64::from(by)).and(Delta::tokens(kind, -i64::from(taken)));
    (word + smaller, taken as u32)
}

#[cfg(test)]
mod tests {
    use super::super::{L, MASK, MAX_LIMIT};
    use super::*;

    const NEW: Who = Who::Newcomer;

    fn word(a: i64, b: i64, f: i64, g: i64) -> Word {
        Word::new((0, 0), (0, 0))
            + Delta::of(A, a)
            + Delta::of(B, b)
            + Delta::of(F, f)
            + Delta::of(G, g)
    }

    #[test]
    fn fields_and_flags_tile_the_word() {
        let fields = [A, B, F, G].map(|field| MASK << field);
        let parts = [fields[0], fields[1], fields[2], fields[3], N, I, L, T];
        assert_eq!(parts.iter().fold(0, |all, part| all ^ part), u64::MAX);
        assert_eq!(parts.iter().map(|part| part.count_ones()).sum::<u32>(), 64);
    }

    #[test]
    fn entering_needs_every_field_and_no_flag() {
        assert_eq!(enter(word(1, 1, 1, 1), NEW), Some(word(0, 0, 0, 0)));
        for lacking in [
            word(0, 1, 1, 1),
            word(1, 0, 1, 1),
            word(1, 1, 0, 1),
            word(1, 1, 1, 0),
        ] {
            assert_eq!(enter(lacking, NEW), None, "{lacking:?}");
        }
        assert_eq!(enter(word(-3, 5, 5, 5), NEW), None);
        for flag in [N, I] {
            let shut = Word(word(1, 1, 1, 1).0 | flag);
            assert_eq!(enter(shut, NEW), None);
            assert!(enter(shut, Who::Entitled).is_some());
        }
        assert!(
            enter(Word(word(1, 1, 1, 1).0 | L), NEW).is_some(),
            "listening shuts nobody out"
        );
    }

    #[test]
    fn the_shared_capacity_alone_decides_for_an_unranked_request() {
        assert_eq!(
            enter_shared(word(0, -4, 1, 2), NEW),
            Some(word(0, -4, 0, 1))
        );
        assert_eq!(enter_shared(word(9, 9, 0, 2), NEW), None);
        assert_eq!(enter_shared(word(9, 9, 2, -1), NEW), None);
        assert!(enter_shared(Word(word(0, 1, 1, 1).0 | N), NEW).is_some());
        let due = Word(word(1, 1, 1, 1).0 | N);
        assert!(enter_shared(due, NEW).is_none(), "its own queue's");
        assert!(take(due, Kind::Running, NEW).is_none());
        assert!(enter_shared(due, Who::Entitled).is_some());
        assert!(enter_shared(Word(word(1, 1, 1, 1).0 | I), NEW).is_none());
    }

    #[test]
    fn shrinking_takes_no_token_that_a_lane_could_use() {
        let shrunk = |old, by| shrink(old, Kind::Running, by);
        assert_eq!(shrunk(word(4, 9, 4, 9), 1), (word(3, 9, 3, 9), 1));
        assert_eq!(shrunk(word(4, 9, 1, 9), 3), (word(1, 9, 1, 9), 0));
        assert_eq!(shrunk(word(1, 9, 1, 9), 3), (word(-2, 9, 0, 9), 1));
        assert_eq!(shrunk(word(-2, 9, 0, 9), 1), (word(-3, 9, 0, 9), 0));
    }

    #[test]
    fn flags_that_an_arrival_set_outlast_one_look() {
        let touched = Word(word(1, 1, 1, 1).0 | N | I | T);
        let Relaxed::Touched(looked_at) = relax(touched, N) else {
            panic!("{touched:?}")
        };
        assert!(looked_at.has(I) && looked_at.has(N) && !looked_at.has(T));
        let Relaxed::Cleared(cleared) = relax(looked_at, N) else {
            panic!("{looked_at:?}")
        };
        assert!(!cleared.has(I) && cleared.has(N));
        assert_eq!(relax(cleared, N), Relaxed::Already);
    }

    #[test]
    fn steps_agree_with_arithmetic_on_the_fields() {
        let max = i64::from(MAX_LIMIT);
        let values = [-max, -1, 0, 1, 2, max];
        for (a, b) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
            for (f, g) in values.iter().flat_map(|f| values.map(|g| (*f, g))) {
                let old = word(a, b, f, g);
                assert_eq!(enter(old, NEW).is_some(), a > 0 && b > 0 && f > 0 && g > 0);
                assert_eq!(occupy(old, Who::Newcomer).is_some(), a > 0 && b > 0);
                assert_eq!(take(old, Kind::Waiting, Who::Newcomer).is_some(), g > 0);
                assert_eq!(has_place(old, Kind::Running), f < a);
                if let Some(new) = enter(old, NEW) {
                    assert_eq!(new, word(a - 1, b - 1, f - 1, g - 1));
                    assert_eq!(
                        new + Delta::ranked(Kind::Running).and(Delta::ranked(Kind::Waiting)),
                        old
                    );
                }
            }
        }
    }
}
