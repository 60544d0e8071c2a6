//! What an admitted request holds, packed so that a permit moves in registers.

use std::fmt;
use std::num::NonZeroU64;

/// How an admitted request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It entered at once.
    Direct,
    /// It waited in the gate's queue.
    Queue,
}

/// Displays as the metrics label: `direct` or `queue`.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Direct => "direct",
            Source::Queue => "queue",
        })
    }
}

/// `1 | queued | waiting | share (16) | lane (16)`. A struct of small fields, or a
/// pointer to the share beside them, costs more than the whole admission: it is
/// stored in parts and loaded as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold(NonZeroU64);

const SHARE: u32 = 16;
const FIELD: u64 = 0xffff;
const WAITING: u64 = 1 << 32;
const QUEUED: u64 = 1 << 33;
const HELD: u64 = 1 << 34;

impl Hold {
    /// Capacity of this lane (0 is *unspecified*, then the ranks), whose tokens
    /// are this share's. The first token has not come.
    #[inline]
    pub(crate) fn new(lane: u32, share: u32, source: Source) -> Self {
        debug_assert!(u64::from(lane) <= FIELD && u64::from(share) <= FIELD);
        let source = if source == Source::Queue { QUEUED } else { 0 };
        Hold::from_bits(u64::from(lane) | u64::from(share) << SHARE | WAITING | source)
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        // The compiler sees that this cannot fail.
        Hold(NonZeroU64::new(bits | HELD).expect("HELD is set"))
    }

    #[inline]
    pub(crate) fn lane(self) -> u32 {
        (self.0.get() & FIELD) as u32
    }

    /// Its rank's share, or where to put an unranked request's tokens back.
    #[inline]
    pub(crate) fn share(self) -> u32 {
        (self.0.get() >> SHARE & FIELD) as u32
    }

    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        self.0.get() & WAITING != 0
    }

    /// The same after its first token.
    #[inline]
    pub(crate) fn streaming(self) -> Self {
        Hold::from_bits(self.0.get() & !WAITING)
    }

    #[inline]
    pub(crate) fn source(self) -> Source {
        if self.0.get() & QUEUED != 0 {
            Source::Queue
        } else {
            Source::Direct
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_back_out() {
        for (lane, share, source) in [(0, 1_023, Source::Queue), (1_024, 0, Source::Direct)] {
            let hold = Hold::new(lane, share, source);
            assert_eq!(
                (hold.lane(), hold.share(), hold.source()),
                (lane, share, source)
            );
            assert!(hold.is_waiting() && !hold.streaming().is_waiting());
            assert_eq!(hold.streaming().lane(), lane);
        }
    }
}
