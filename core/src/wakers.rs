//! Whom a turn is to wake: kept until it has ended.

use std::task::Waker;

use crate::budget::Flags;
use crate::word::L;

/// Offers, and so wakers kept, before a turn is given up to wake them.
const BATCH: usize = 8;

/// Whom to wake once the turn has ended: foreign code never runs within.
pub(crate) struct Wakers {
    pub(crate) kept: [Option<Waker>; BATCH],
    pub(crate) count: usize,
    /// Those who listen for room: it came back while they were shut out.
    pub(crate) listeners: bool,
    /// The turn failed, and with it the lists of those who wait.
    pub(crate) everybody: bool,
}

impl Wakers {
    pub(crate) fn new() -> Self {
        Wakers {
            kept: [const { None }; BATCH],
            count: 0,
            listeners: false,
            everybody: false,
        }
    }

    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        self.kept[self.count] = waker;
        self.count += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && !self.listeners && !self.everybody
    }

    /// The turn put something back, or cleared flags, in a word with these. It
    /// rings for none of that, or it would wake itself for ever; but a listener
    /// who tried meanwhile knows nothing of it.
    pub(crate) fn opened(&mut self, flags: Flags) {
        self.listeners |= flags.has(L);
    }
}
