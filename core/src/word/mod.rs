//! The share word: what one rank's line holds, packed into 64 bits.
//!
//! ```text
//!  63 62 61 60 | 59 ....... 45 | 44 ....... 30 | 29 ....... 15 | 14 ........ 0
//!   T  L  I  N |       g       |       f       |       b       |       a
//! ```
//!
//! | field | meaning | at rest, limits unmoved |
//! | --- | --- | --- |
//! | `a` | own running room: the rank's limit R less its own running requests | 0 ..= R |
//! | `b` | own waiting room: W less its own waiting requests | 0 ..= W |
//! | `f` | running tokens of the worker's capacity that lie free here | 0 ..= a |
//! | `g` | waiting tokens that lie free here | 0 ..= b |
//! | `N` | the rank's queue may hold somebody: newcomers of the rank queue, and others while it has own room; releases ring | |
//! | `I` | somebody may wait for the worker's capacity, or it shrank below what runs: all newcomers queue, releases ring | |
//! | `L` | somebody listens for room: releases fire the event | |
//! | `T` | an arrival set `N` or `I` since the turn last looked: the turn may not clear them | |
//!
//! Each field is signed, kept with a bias of 2^14: where a limit shrank below
//! what runs, own room is negative until enough has ended. A field is `>= 0` exactly
//! when its top bit is set, so that one subtraction and one mask decide an
//! admission.
//!
//! Over all shares, `sum of f = nR - running - tokens in somebody's hand`, and
//! likewise for `g`: the worker's limits hold because a request without a token
//! of each kind is not admitted, and tokens are made and destroyed only where
//! limits move ([`Budget::balance`](crate::budget::Budget::balance)).

pub(crate) mod cell;
pub(crate) mod step;

/// Width of one field.
const WIDTH: u32 = 15;
/// What a field of value 0 looks like.
const BIAS: u64 = 1 << (WIDTH - 1);
const MASK: u64 = (1 << WIDTH) - 1;

const A: u32 = 0;
const B: u32 = WIDTH;
const F: u32 = 2 * WIDTH;
const G: u32 = 3 * WIDTH;

/// The rank's queue may hold somebody.
pub(crate) const N: u64 = 1 << 60;
/// Closed to newcomers on the worker's account.
pub(crate) const I: u64 = 1 << 61;
/// Somebody listens for room.
pub(crate) const L: u64 = 1 << 62;
/// Touched by an arrival since the turn last looked.
pub(crate) const T: u64 = 1 << 63;

/// The largest limit that a field can hold. A share's free tokens exceed its
/// own room only by those that calls in progress were about to put down there; the
/// remaining quarter of the field's range is for them.
pub(crate) const MAX_LIMIT: u32 = 12_287;

/// The two kinds of the worker's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One more request may run.
    Running,
    /// One more request may wait for its first token.
    Waiting,
}

impl Kind {
    const fn free(self) -> u32 {
        match self {
            Kind::Running => F,
            Kind::Waiting => G,
        }
    }

    const fn own(self) -> u32 {
        match self {
            Kind::Running => A,
            Kind::Waiting => B,
        }
    }
}

/// One reading of a share word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// This much own room and so many tokens, each of running and waiting.
    pub(crate) fn new((a, b): (u32, u32), (f, g): (u32, u32)) -> Word {
        let zero = [A, B, F, G]
            .iter()
            .fold(0, |word, field| word | BIAS << field);
        [(A, a), (B, b), (F, f), (G, g)]
            .into_iter()
            .fold(Word(zero), |word, (field, by)| {
                word + Delta::of(field, by.into())
            })
    }

    /// Nothing but these flags: what a give-back tells that changed no word.
    pub(crate) fn only(flags: u64) -> Word {
        Word(flags)
    }

    fn get(self, field: u32) -> i32 {
        ((self.0 >> field) & MASK) as i32 - BIAS as i32
    }

    /// What the rank's own limit leaves; negative when it shrank below what runs.
    pub(crate) fn own(self, kind: Kind) -> i32 {
        self.get(kind.own())
    }

    /// The tokens that lie free here.
    pub(crate) fn free(self, kind: Kind) -> i32 {
        self.get(kind.free())
    }

    /// Whether any of these flags is set.
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// This word with the other's flags as well.
    pub(crate) fn with_flags_of(self, other: Word) -> Word {
        Word(self.0 | other.0 & (N | I | L | T))
    }

    /// Whether its tokens are not for newcomers of other lanes: somebody waits for the
    /// worker's capacity, or somebody of this lane for nothing else.
    pub(crate) fn shuts_foreigners(self) -> bool {
        self.has(I) || self.has(N) && self.own_lack().is_none()
    }

    /// Whether all of these flags are set.
    pub(crate) fn has_all(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// The kind of which the rank's own limits leave no room.
    pub(crate) fn own_lack(self) -> Option<Kind> {
        [Kind::Running, Kind::Waiting]
            .into_iter()
            .find(|kind| self.own(*kind) <= 0)
    }

    /// Whether of either kind no token is left that could be taken.
    #[inline]
    pub(crate) fn ran_out(self) -> bool {
        const TAKEN: Delta = Delta::of(F, -1).and(Delta::of(G, -1));
        const LEFT: u64 = BIAS << F | BIAS << G;
        (self + TAKEN).0 & LEFT != LEFT
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a {} b {} f {} g {}{}{}{}{}",
            self.get(A),
            self.get(B),
            self.get(F),
            self.get(G),
            if self.has(N) { " N" } else { "" },
            if self.has(I) { " I" } else { "" },
            if self.has(L) { " L" } else { "" },
            if self.has(T) { " T" } else { "" },
        )
    }
}

/// A change of a word's fields that does not depend on their values: what a
/// fetch-add may apply. The caller knows that every field stays in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delta(u64);

impl Delta {
    /// A field's change, as a two's-complement addend of the whole word: exact
    /// as long as no field leaves its range.
    const fn of(field: u32, by: i64) -> Delta {
        Delta((by as u64).wrapping_shl(field))
    }

    /// Both at once.
    pub(crate) const fn and(self, other: Delta) -> Delta {
        Delta(self.0.wrapping_add(other.0))
    }

    /// Own room and free token of one kind: a ranked request gives it back.
    pub(crate) const fn ranked(kind: Kind) -> Delta {
        Delta::of(kind.own(), 1).and(Delta::of(kind.free(), 1))
    }

    /// Free tokens of one kind.
    pub(crate) const fn tokens(kind: Kind, by: i64) -> Delta {
        Delta::of(kind.free(), by)
    }

    /// Own room of one kind.
    pub(crate) const fn room(kind: Kind, by: i64) -> Delta {
        Delta::of(kind.own(), by)
    }
}

impl std::ops::Add<Delta> for Word {
    type Output = Word;

    fn add(self, delta: Delta) -> Word {
        Word(self.0.wrapping_add(delta.0))
    }
}
