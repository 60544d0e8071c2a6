//! The engine limits in force, and how many tokens there are: what the limits
//! allow, and while a limit that shrank waits for what runs to end, more.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::word::Kind;

/// One limit per rank, by kind. The turn's alone to change.
#[derive(Debug)]
pub(crate) struct EngineLimits {
    running: AtomicU32,
    waiting: AtomicU32,
}

impl EngineLimits {
    pub(crate) fn new(running: u32, waiting: u32) -> Self {
        EngineLimits {
            running: AtomicU32::new(running),
            waiting: AtomicU32::new(waiting),
        }
    }

    fn of(&self, kind: Kind) -> &AtomicU32 {
        match kind {
            Kind::Running => &self.running,
            Kind::Waiting => &self.waiting,
        }
    }

    pub(crate) fn get(&self, kind: Kind) -> u32 {
        // Acquire: whoever measures a word by a limit reads the word after it.
        self.of(kind).load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, kind: Kind, limit: u32) {
        // DEBT, Release: who sees a limit that grew sees the own rooms that grew
        // before it; one that shrinks comes first, see `move_own`.
        self.of(kind).store(limit, Ordering::Release);
    }
}

/// The tokens of each kind in existence: free in the shares, held by requests,
/// or in the hand of a call in progress. `moving | running (31 bits) | waiting (32)`.
#[derive(Debug)]
pub(crate) struct Tokens(AtomicU64);

/// The turn has some in its hand.
const MOVING: u64 = 1 << 63;

/// One reading of [`Tokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenCounts(u64);

impl TokenCounts {
    pub(crate) fn of(self, kind: Kind) -> u32 {
        match kind {
            Kind::Running => ((self.0 & !MOVING) >> 32) as u32,
            Kind::Waiting => self.0 as u32,
        }
    }

    /// Whether some are in the turn's hand, which count as held for that moment.
    pub(crate) fn moving(self) -> bool {
        self.0 & MOVING != 0
    }
}

/// So many tokens of a kind.
fn many(kind: Kind, count: u32) -> u64 {
    match kind {
        Kind::Running => u64::from(count) << 32,
        Kind::Waiting => u64::from(count),
    }
}

impl Tokens {
    pub(crate) fn new(running: u32, waiting: u32) -> Self {
        let all = many(Kind::Running, running) + many(Kind::Waiting, waiting);
        Tokens(AtomicU64::new(all))
    }

    pub(crate) fn read(&self) -> TokenCounts {
        // DEBT, Acquire: a token that was destroyed is gone from its share.
        TokenCounts(self.0.load(Ordering::Acquire))
    }

    /// Takes tokens from shares, and destroys them. The turn's alone.
    pub(crate) fn destroy(&self, kind: Kind, take: impl FnOnce() -> u32) -> u32 {
        // AcqRel: before they are missing in a share.
        self.0.fetch_add(MOVING, Ordering::AcqRel);
        let taken = take();
        // DEBT, Release: after they were taken from a share.
        self.0
            .fetch_sub(MOVING + many(kind, taken), Ordering::AcqRel);
        taken
    }

    /// Makes tokens, and puts them into shares. The turn's alone.
    pub(crate) fn make(&self, kind: Kind, count: u32, put: impl FnOnce()) {
        // AcqRel: before they lie in a share.
        self.0
            .fetch_add(MOVING + many(kind, count), Ordering::AcqRel);
        put();
        // AcqRel: after all of them do.
        self.0.fetch_sub(MOVING, Ordering::AcqRel);
    }

    /// Destroys the token in the caller's hand if there are more than so many.
    pub(crate) fn destroy_above(&self, kind: Kind, most: u64) -> bool {
        let mut seen = self.read();
        while u64::from(seen.of(kind)) > most {
            let fewer = seen.0 - many(kind, 1);
            // DEBT, Release: hands on what the request that held it did.
            match self
                .0
                .compare_exchange_weak(seen.0, fewer, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(now) => seen = TokenCounts(now),
            }
        }
        false
    }
}
