//! The worker's capacity over its shares: finding a token, putting one back,
//! and moving the limits.

use crate::engine_limits::{EngineLimits, Epoch};
use crate::publish::Published;
use crate::share::{Share, share};
use crate::sync::{Ordering, fence};
use crate::word::step::Who;
use crate::word::{Delta, I, Kind, N, T, Word};

/// The shares of one worker: one until the engine reports, then one per rank.
#[derive(Debug)]
pub(crate) struct Budget {
    first: Share,
    rest: Published<Box<[Share]>>,
    engine: EngineLimits,
}

/// What a request lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Its rank's own limit is reached.
    Own(Kind),
    /// The worker's is.
    Worker(Kind),
    /// Somebody who was there before may be waiting for the same.
    Turn,
}

/// Flags that came back with capacity given back: whom to tell.
pub(crate) type Flags = Word;

impl Budget {
    pub(crate) fn new(running: u32, waiting: u32) -> Self {
        Budget {
            first: share(running, waiting, 0),
            rest: Published::empty(),
            engine: EngineLimits::new(running, waiting),
        }
    }

    pub(crate) fn len(&self) -> usize {
        1 + self.rest.get().map_or(0, |rest| rest.len())
    }

    #[inline]
    pub(crate) fn share(&self, index: usize) -> &Share {
        match index.checked_sub(1) {
            None => &self.first,
            Some(index) => &self.rest.get().expect("index of a share")[index],
        }
    }

    pub(crate) fn shares(&self) -> impl Iterator<Item = &Share> {
        (0..self.len()).map(|index| self.share(index))
    }

    /// Limits in force, per rank: running and waiting.
    pub(crate) fn limits(&self) -> (u32, u32) {
        self.engine.read()
    }

    /// Changes whenever the limits move, and when their move is done.
    pub(crate) fn epoch(&self) -> Epoch {
        self.engine.epoch()
    }

    /// A ranked request enters. `told` hears the flags of what it had to put back.
    #[inline]
    pub(crate) fn enter_ranked(
        &self,
        home: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<(), Lack> {
        if who == Who::Newcomer {
            let Err(denied) = self.share(home).enter() else {
                return Ok(());
            };
            if let Some(lack) = own_lack(denied, who) {
                return Err(lack);
            }
        }
        self.enter_with_tokens(home, who, told)
    }

    /// The tokens are not all at home: takes them into the hand, the running
    /// one first, so that of two half-takers one goes on.
    #[cold]
    fn enter_with_tokens(
        &self,
        home: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<(), Lack> {
        loop {
            let epoch = self.epoch_for(who)?;
            if let Some(lack) = own_lack(self.share(home).load(), who) {
                return Err(lack);
            }
            self.take_both(home, who, told)?;
            if let Err(denied) = self.share(home).occupy(who) {
                told(self.put(Kind::Waiting, home));
                told(self.put(Kind::Running, home));
                match own_lack(denied, who) {
                    Some(lack) => return Err(lack),
                    None => continue,
                }
            }
            // A limit that shrank meanwhile did not see what was in the hand.
            if who == Who::Turn || self.epoch() == epoch {
                return Ok(());
            }
            told(self.share(home).add(GIVE_BACK_BOTH));
        }
    }

    /// An unranked request enters; the share that it should give back to.
    #[inline]
    pub(crate) fn enter_unranked(
        &self,
        hint: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<usize, Lack> {
        if who == Who::Newcomer {
            let shares = self.len();
            let mut closed = false;
            for index in (hint..shares).chain(0..hint.min(shares)) {
                match self.share(index).enter_shared() {
                    Ok(()) => return Ok(index),
                    Err(denied) => closed |= denied.has(I),
                }
            }
            if closed {
                return Err(Lack::Turn);
            }
        }
        loop {
            let epoch = self.epoch_for(who)?;
            let from = self.take_both(hint, who, told)?;
            if who == Who::Turn || self.epoch() == epoch {
                return Ok(from);
            }
            told(self.put(Kind::Waiting, from));
            told(self.put(Kind::Running, from));
        }
    }

    /// The epoch, unless tokens are owed to some share: then those that lie
    /// free elsewhere are no newcomer's, whatever it knows.
    fn epoch_for(&self, who: Who) -> Result<Epoch, Lack> {
        let epoch = self.epoch();
        if who == Who::Known && epoch.moving() {
            return Err(Lack::Turn);
        }
        Ok(epoch)
    }

    fn take_both(
        &self,
        home: usize,
        who: Who,
        told: &mut impl FnMut(Flags),
    ) -> Result<usize, Lack> {
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
                    Err(denied) => closed |= who == Who::Newcomer && denied.has(I),
                }
            }
            if closed {
                return Err(Lack::Turn);
            }
            if self.run_outs() == run_outs {
                return Err(Lack::Worker(kind));
            }
        }
    }

    /// Whether at one moment of this call no token of this kind lay free (or
    /// every one that did was about to be taken by a call in progress).
    ///
    /// Shares read one after another as empty prove nothing: a token may have
    /// come to the first and gone from the second in between. But whoever takes
    /// a share's last token counts a run-out before its CAS; with the same sum
    /// before and after, nothing that was there when the scan began is gone.
    pub(crate) fn none_free(&self, kind: Kind) -> bool {
        loop {
            let run_outs = self.run_outs();
            if self.shares().any(|share| share.load().free(kind) > 0) {
                return false;
            }
            if self.run_outs() == run_outs {
                return true;
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
    /// requests that are not accounted to a rank, and this is one of them.
    #[inline]
    pub(crate) fn put(&self, kind: Kind, hint: usize) -> Flags {
        loop {
            let shares = self.len();
            for index in (hint..shares).chain(0..hint.min(shares)) {
                if let Ok(flags) = self.share(index).put(kind) {
                    return flags;
                }
            }
        }
    }

    /// Puts a token of each kind down, the waiting one first, so that nobody waits
    /// who does not run.
    #[inline]
    pub(crate) fn put_both(&self, hint: usize) -> Flags {
        self.put(Kind::Waiting, hint)
            .with_flags_of(self.put(Kind::Running, hint))
    }

    /// Somebody queued, of the lane of this rank or of none: whoever frees what it
    /// lacks is to know. True if that lies free already.
    pub(crate) fn announce(&self, home: Option<usize>) -> bool {
        // RING, SeqCst: the mark before the flags, against the turn's flags before
        // marks: a flag that is only read here is not about to be cleared by a turn
        // that does not see the mark.
        fence(Ordering::SeqCst);
        let own_room = match home {
            Some(home) => self.share(home).set(N | T).own_room(),
            None => true,
        };
        own_room && self.set_everywhere(I | T)
    }

    /// Sets flags everywhere; whether both kinds of token lay free somewhere.
    ///
    /// A share that has them already is only read: the caller did whatever must
    /// be seen by those who clear flags before a SeqCst fence.
    pub(crate) fn set_everywhere(&self, flags: u64) -> bool {
        let (mut running, mut waiting) = (false, false);
        for share in self.shares() {
            let seen = share.load();
            let word = if seen.has_all(flags) {
                seen
            } else {
                share.set(flags)
            };
            running |= word.free(Kind::Running) > 0;
            waiting |= word.free(Kind::Waiting) > 0;
        }
        running && waiting
    }

    pub(crate) fn clear_everywhere(&self, flags: u64) {
        for share in self.shares() {
            share.clear(flags);
        }
    }

    /// Moves the limits. The turn's alone. Newcomers are shut out (`I`) until the
    /// turn finds that nothing is owed.
    pub(crate) fn resize(&self, running: u32, waiting: u32) {
        self.move_to(running, waiting);
        self.settle_debts();
    }

    fn move_to(&self, running: u32, waiting: u32) {
        let (old_running, old_waiting) = self.limits();
        // First the epoch: whoever has tokens in hand from now on looks again.
        self.engine.set(running, waiting);
        self.set_everywhere(I);
        self.shift(Kind::Running, i64::from(running) - i64::from(old_running));
        self.shift(Kind::Waiting, i64::from(waiting) - i64::from(old_waiting));
    }

    fn shift(&self, kind: Kind, by: i64) {
        for share in self.shares() {
            let tokens = Delta::tokens(kind, by.min(0));
            share.add(Delta::room(kind, by).and(tokens));
        }
        // New tokens go where a lane could use them, or a share that was owed
        // some would gather ever more.
        let mut new = u32::try_from(by).unwrap_or(0) * self.len() as u32;
        while new > 0 {
            for share in self.shares() {
                new -= share.fill(kind, new);
            }
        }
    }

    /// Moves tokens from the shares that have some to those that owe some; true
    /// if nothing is owed any more. The turn's alone.
    pub(crate) fn settle_debts(&self) -> bool {
        let settled = self.move_to_debtors();
        if settled && self.epoch().moving() {
            self.engine.moved();
        }
        settled
    }

    fn move_to_debtors(&self) -> bool {
        [Kind::Running, Kind::Waiting].into_iter().all(|kind| {
            self.shares().all(|debtor| {
                let mut owed = -debtor.load().free(kind);
                for giver in self.shares() {
                    let Some(most) = u32::try_from(owed).ok().filter(|most| *most > 0) else {
                        break;
                    };
                    let taken = giver.drain(kind, most) as i32;
                    debtor.add(Delta::tokens(kind, taken.into()));
                    owed -= taken;
                }
                owed <= 0
            })
        })
    }

    /// The engine reported this many ranks. The turn's alone, once.
    pub(crate) fn split(&self, ranks: usize, running: u32, waiting: u32) {
        self.move_to(running, waiting);
        // Shut until the turn finds that nothing is owed.
        let rest = (1..ranks).map(|_| share(running, waiting, I)).collect();
        self.rest.get_or_publish(Box::new(rest));
        self.settle_debts();
    }
}

const GIVE_BACK_BOTH: Delta = Delta::ranked(Kind::Running).and(Delta::ranked(Kind::Waiting));

/// What the home word alone says against a ranked request.
fn own_lack(word: Word, who: Who) -> Option<Lack> {
    if word.own(Kind::Running) <= 0 {
        Some(Lack::Own(Kind::Running))
    } else if word.own(Kind::Waiting) <= 0 {
        Some(Lack::Own(Kind::Waiting))
    } else {
        (who == Who::Newcomer && word.has(N | I)).then_some(Lack::Turn)
    }
}
