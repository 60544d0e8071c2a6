//! A slot's state: one word, so that a request that leaves a long queue waits for one
//! cache line.
//!
//! ```text
//!  63 ......... 14 | 13 ....... 3 |  2   | 1 .. 0
//!        age       | lane, share  | TURN | status
//! ```
//!
//! Ages are not reused, so a stale reference to a slot can tell that it is stale. A
//! request that is WAITING has its lane there; one that was OFFERED capacity has the
//! share where that is, since its ticket knows its lane. TURN is set while the turn is
//! not done with its offer.

pub(crate) const DONE: u64 = 0;
pub(crate) const WAITING: u64 = 1;
pub(crate) const OFFERED: u64 = 2;
pub(crate) const STATUS: u64 = 3;
pub(crate) const TURN: u64 = 4;
const PLACE: u32 = 3;
/// Lanes are 1 + 1024 at most, shares 1024.
const PLACE_MASK: u64 = (1 << 11) - 1;
const AGE: u32 = 14;
/// Ages have 50 bits: at a million arrivals a second they last for 35 years.
pub(crate) const AGE_MASK: u64 = (1 << (64 - AGE)) - 1;

/// One reading of a slot's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u64);

impl State {
    pub(crate) fn waiting(age: u64, lane: u32) -> State {
        debug_assert!(age <= AGE_MASK && u64::from(lane) <= PLACE_MASK);
        State(age << AGE | u64::from(lane) << PLACE | WAITING)
    }

    pub(crate) fn offered(age: u64, share: u32) -> State {
        debug_assert!(age <= AGE_MASK && u64::from(share) <= PLACE_MASK);
        State(age << AGE | u64::from(share) << PLACE | TURN | OFFERED)
    }

    pub(crate) fn age(self) -> u64 {
        self.0 >> AGE
    }

    /// The lane or the share.
    pub(crate) fn place(self) -> u32 {
        (self.0 >> PLACE & PLACE_MASK) as u32
    }

    pub(crate) fn is(self, status: u64) -> bool {
        self.0 & STATUS == status
    }

    /// Age and lane of the request that waits there.
    pub(crate) fn queued(self) -> Option<(u64, u32)> {
        self.is(WAITING).then_some((self.age(), self.place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_back_out() {
        for (age, place) in [(0, 1_024), (AGE_MASK, 0), (7, 1_024)] {
            let waiting = State::waiting(age, place);
            assert_eq!(waiting.queued(), Some((age, place)));
            let offered = State::offered(age, place);
            assert!(offered.is(OFFERED) && offered.0 & TURN != 0);
            assert_eq!((offered.age(), offered.place()), (age, place));
            assert_eq!(offered.queued(), None);
        }
    }
}
