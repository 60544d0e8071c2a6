//! The worker's capacity over its shares: finding a token and putting one back.

use crate::engine_limits::{EngineLimits, Tokens};
use crate::publish::PublishedSlice;
use crate::reached::Reached;
use crate::share::{Share, share};
use crate::stripe::hint;
use crate::word::step::Who;
use crate::word::{I, Kind, N, Word};

/// The shares of one worker: one until the engine reports, then one per rank.
#[derive(Debug)]
pub(crate) struct Budget {
    first: Share,
    pub(crate) rest: PublishedSlice<Share>,
    pub(crate) limits: EngineLimits,
    pub(crate) tokens: Tokens,
}

/// Why a request does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// A limit was reached at a moment of this call.
    Of(Reached),
    /// Flags: somebody who was there before may be waiting for the same.
    Shut,
}

/// Flags that came back with capacity given back: whom to tell.
pub(crate) type Flags = Word;

impl Budget {
    pub(crate) fn new(running: u32, waiting: u32) -> Self {
        Budget {
            first: share((running, waiting), (running, waiting)),
            rest: PublishedSlice::empty(),
            limits: EngineLimits::new(running, waiting),
            tokens: Tokens::new(running, waiting),
        }
    }

    pub(crate) fn len(&self) -> usize {
        1 + self.rest.get().len()
    }

    #[inline]
    pub(crate) fn share(&self, index: usize) -> &Share {
        match index.checked_sub(1) {
            None => &self.first,
            Some(index) => &self.rest.get()[index],
        }
    }

    pub(crate) fn shares(&self) -> impl Iterator<Item = &Share> {
        (0..self.len()).map(|index| self.share(index))
    }

    /// Where this thread looks first for tokens of no rank.
    #[inline]
    pub(crate) fn hint(&self) -> u32 {
        hint(self.len())
    }

    /// A ranked request enters: in one step, or where its tokens are not all at home
    /// by taking them into the hand, the running one first, so that of two half-takers
    /// one goes on. `told` hears the flags of what it had to put back.
    pub(crate) fn enter_ranked(
        &self,
        home: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<(), Lack> {
        match self.share(home).enter(who) {
            Ok(()) => return Ok(()),
            Err(denied) => own_lack(denied, who)?,
        }
        self.take_both(home, who, told)?;
        self.share(home).occupy(who).map_err(|denied| {
            told(self.put_both(home));
            own_lack(denied, who).expect_err("it was denied for something")
        })
    }

    /// An unranked request enters; the share that it should give back to.
    pub(crate) fn enter_unranked(
        &self,
        hint: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<usize, Lack> {
        let shares = self.len();
        let mut closed = false;
        for index in (hint..shares).chain(0..hint.min(shares)) {
            match self.share(index).enter_shared(who) {
                Ok(()) => return Ok(index),
                Err(denied) => closed |= denied.shuts_foreigners(),
            }
        }
        if closed && who == Who::Newcomer {
            return Err(Lack::Shut);
        }
        self.take_both(hint, who, told)
    }

    fn take_both(
        &self,
        home: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<usize, Lack> {
        // A look first: half of what it needs, taken and put back, would be two writes,
        // and room that somebody listens for.
        if let Some(kind) = self.empty() {
            return Err(Lack::Of(Reached::by_worker(kind)));
        }
        let from = self.take(Kind::Running, home, who)?;
        match self.take(Kind::Waiting, home, who) {
            Ok(_) => Ok(from),
            Err(lack) => {
                told(self.put(Kind::Running, from));
                Err(lack)
            }
        }
    }

    /// Takes one token from any share, beginning at `from`.
    fn take(&self, kind: Kind, from: usize, who: Who) -> Result<usize, Lack> {
        let shares = self.len();
        loop {
            let run_outs = self.run_outs();
            let mut closed = false;
            for index in (from..shares).chain(0..from.min(shares)) {
                match self.share(index).take(kind, who) {
                    Ok(()) => return Ok(index),
                    Err(denied) => closed |= who == Who::Newcomer && denied.shuts_foreigners(),
                }
            }
            if closed {
                return Err(Lack::Shut);
            }
            if self.run_outs() == run_outs {
                return Err(Lack::Of(Reached::by_worker(kind)));
            }
        }
    }

    /// A kind of which at one moment of this call no token lay free (or every one
    /// that did was about to be taken by a call in progress).
    ///
    /// Shares read one after another as empty prove nothing: a token may have
    /// come to the first and gone from the second in between. But whoever takes
    /// a share's last token counts a run-out before its CAS; with the same sum
    /// before and after, nothing that was there when the scan began is gone.
    pub(crate) fn empty(&self) -> Option<Kind> {
        loop {
            let run_outs = self.run_outs();
            let (mut running, mut waiting) = (false, false);
            for share in self.shares() {
                let word = share.load();
                running |= word.free(Kind::Running) > 0;
                waiting |= word.free(Kind::Waiting) > 0;
                if running && waiting {
                    return None;
                }
            }
            if self.run_outs() == run_outs {
                return Some(if running {
                    Kind::Waiting
                } else {
                    Kind::Running
                });
            }
        }
    }

    /// Free tokens over all shares, read one after another.
    pub(crate) fn free(&self, kind: Kind) -> i64 {
        self.shares()
            .map(|share| i64::from(share.load().free(kind)))
            .sum()
    }

    fn run_outs(&self) -> u32 {
        self.shares()
            .fold(0, |sum, share| sum.wrapping_add(share.run_outs()))
    }

    /// Puts one token down where a lane could use it, beginning at `hint`. There
    /// is such a place: free tokens are fewer than the ranks' own room by the
    /// requests that are not accounted to a rank, and this is one of them. Only
    /// while a limit shrinks, and until what it leaves too much is paid, there may be
    /// more tokens than it allows; then this is one too many.
    #[cold]
    pub(crate) fn put(&self, kind: Kind, hint: usize) -> Flags {
        loop {
            let shares = self.len();
            for index in (hint..shares).chain(0..hint.min(shares)) {
                if let Ok(flags) = self.share(index).put(kind) {
                    return flags;
                }
            }
            if self.pay_debt(kind) {
                // The turn knows whether the gate can open.
                return Word::only(I);
            }
        }
    }

    /// Puts a token of each kind down, the waiting one first, so that nobody waits
    /// who does not run.
    fn put_both(&self, hint: usize) -> Flags {
        self.put(Kind::Waiting, hint)
            .with_flags_of(self.put(Kind::Running, hint))
    }
}

/// What the home word alone says against a ranked request.
fn own_lack(word: Word, who: Who) -> Result<(), Lack> {
    if let Some(kind) = word.own_lack() {
        return Err(Lack::Of(Reached::by_rank(kind)));
    }
    if who == Who::Newcomer && word.has(N | I) {
        return Err(Lack::Shut);
    }
    Ok(())
}
