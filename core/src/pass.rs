//! The dispatcher's turn: offers capacity to the oldest queued requests that fit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::budget::{Flags, Lack};
use crate::lists::Lists;
use crate::reached::Reached;
use crate::shared::{Dispatch, Shared};
use crate::slots::bits;
use crate::sync::{Ordering, fence};
use crate::word::step::{Relaxed, Who};
use crate::word::{I, L, N};

/// Offers, and so wakers kept, before a turn is given up to wake them.
const BATCH: usize = 8;

/// Batches in the turn of a thread that assists.
const ASSIST_BATCHES: usize = if cfg!(tidegate_loom) { usize::MAX } else { 16 };

/// Whom to wake once the turn has ended: foreign code never runs within.
struct Wakers {
    kept: [Option<Waker>; BATCH],
    count: usize,
    /// Those who listen for room: it came back while they were shut out.
    listeners: bool,
    /// The turn failed, and with it the lists of those who wait.
    everybody: bool,
}

impl Wakers {
    fn new() -> Self {
        Wakers {
            kept: [const { None }; BATCH],
            count: 0,
            listeners: false,
            everybody: false,
        }
    }

    fn push(&mut self, waker: Option<Waker>) {
        self.kept[self.count] = waker;
        self.count += 1;
    }

    fn is_full(&self) -> bool {
        self.count == BATCH
    }

    fn is_empty(&self) -> bool {
        self.count == 0 && !self.listeners && !self.everybody
    }

    /// The turn put something back, or cleared flags, in a word with these. It
    /// rings for none of that, or it would wake itself for ever; but a listener
    /// who tried meanwhile knows nothing of it.
    fn opened(&mut self, flags: Flags) {
        self.listeners |= flags.has(L);
    }
}

fn wake(waker: Waker) {
    // A waker that panics keeps no other from being woken.
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

impl Shared {
    /// Somebody should look at the queue.
    pub(crate) fn ring(&self) {
        // Also where one was wanted already: who left word before may have been
        // stopped before it did anything about it.
        if self.turn.ring() {
            match self.dispatch {
                Dispatch::Thread => self.turn.wake(),
                Dispatch::Assisted => self.assist(),
                Dispatch::Manual => {}
            }
        }
    }

    /// Runs a bounded turn on this thread; leaves the rest to the dispatcher's.
    fn assist(&self) {
        if self.turn.try_start() && !self.run_turn(ASSIST_BATCHES) {
            self.turn.wake();
        }
    }

    /// Runs a turn to its end if one is wanted.
    pub(crate) fn run_wanted(&self) {
        while self.turn.try_start() {
            self.run_turn(usize::MAX);
        }
    }

    /// Runs `change` within a turn, waiting for the one that may be running. A
    /// turn is wanted afterwards.
    pub(crate) fn within_turn<R>(&self, change: impl FnOnce(&Self, &mut Lists) -> R) -> R {
        while !self.turn.try_start_unasked() {
            crate::sync::thread::yield_now();
        }
        let result = self.lists.with_mut(|lists| {
            // SAFETY: `try_start_unasked` made the turn ours.
            change(self, unsafe { &mut *lists })
        });
        self.turn.hand_over();
        result
    }

    /// The turn that this thread has started: at most so many batches. False if
    /// something may be left; then the turn is wanted.
    fn run_turn(&self, batches: usize) -> bool {
        let mut wakers = Wakers::new();
        for _ in 0..batches {
            let done = self.batch(&mut wakers);
            let ended = if done { self.turn.try_end() } else { false };
            if ended {
                self.wake(&mut wakers);
                return true;
            }
            // Something is left. Foreign code does not run within a turn: it is
            // given up for the wakers, and begun anew.
            if !wakers.is_empty() {
                self.turn.hand_over();
                self.wake(&mut wakers);
                if !self.turn.try_start() {
                    // Somebody else goes on with it.
                    return true;
                }
            }
        }
        self.turn.hand_over();
        false
    }

    /// After a turn, or between two.
    fn wake(&self, wakers: &mut Wakers) {
        let kept = &mut wakers.kept[..std::mem::take(&mut wakers.count)];
        kept.iter_mut().filter_map(Option::take).for_each(wake);
        if std::mem::take(&mut wakers.everybody) {
            self.slots.take_wakers().for_each(wake);
        }
        if std::mem::take(&mut wakers.listeners) {
            self.fire_room();
        }
    }

    /// One batch of offers. True if nothing is left to offer.
    fn batch(&self, wakers: &mut Wakers) -> bool {
        let pass = catch_unwind(AssertUnwindSafe(|| {
            self.lists.with_mut(|lists| {
                // SAFETY: only the holder of the turn comes here.
                self.pass(unsafe { &mut *lists }, wakers)
            })
        }));
        pass.unwrap_or_else(|_| {
            // A fault of ours. Nobody may wait for ever on a queue that nobody
            // can be trusted to drain.
            self.shut();
            wakers.everybody = true;
            wakers.listeners = true;
            true
        })
    }

    fn pass(&self, lists: &mut Lists, wakers: &mut Wakers) -> bool {
        loop {
            // RING, SeqCst: flags before marks, against the arrivals' marks before flags.
            fence(Ordering::SeqCst);
            // Marks are read one after another, and may show a request without
            // one that was queued before it came. Of those older than this, none
            // is missing; a younger one is not done with its flags, and sees to it
            // that it is looked at again.
            let young = self.slots.next_age();
            lists.take_in(&self.slots);
            if self.is_stopped() {
                return self.dismiss(lists, wakers);
            }
            // While tokens are owed, those that come are for the debtors.
            let owed = self.budget.balance();
            let mut own_full = OwnFull::default();
            let mut shut = owed.map(Reached::by_worker);
            while shut.is_none() {
                let Some((lane, age, slot)) = self.oldest(lists, young, &own_full) else {
                    break;
                };
                if wakers.is_full() {
                    return false;
                }
                match self.enter_as(lane, Who::Entitled, |flags| wakers.opened(flags)) {
                    // An older one lacked its rank's room alone, and had it
                    // before this one had the worker's.
                    Ok(hold) if own_full.any(|lane| self.has_own_room(lane)) => {
                        wakers.opened(self.put_back(hold));
                        own_full = OwnFull::default();
                    }
                    Ok(hold) => {
                        let share = hold.share();
                        if self.slots.offer(slot, age, share) {
                            self.lane(lane).queue.offer();
                            self.total.leave();
                            wakers.push(self.slots.slot(slot).waker.take());
                            if self.slots.let_go(slot) {
                                self.lane(lane).queue.settle_offer();
                            }
                        } else {
                            // It left: silently, this turn goes on looking.
                            wakers.opened(self.put_back(hold));
                        }
                        lists.pop(&self.slots, lane as usize);
                    }
                    Err(Lack::Of(reached)) if !reached.of_worker => {
                        self.lane(lane).queue.set_lacked(reached);
                        own_full.add(lane);
                    }
                    // Nobody younger may have what this one lacks.
                    Err(Lack::Of(reached)) => shut = Some(reached),
                    Err(Lack::Shut) => unreachable!("flags shut nobody out who is entitled"),
                }
            }
            let mut again = false;
            if let Some(reached) = shut {
                // Room that came before the flag is seen here; after it, it rings.
                let room = self.budget.set_everywhere(I).is_none();
                again |= if owed.is_some() {
                    self.budget.balance().is_none()
                } else {
                    room
                };
                let behind =
                    |lane: &u32| !lists.is_empty(*lane as usize) && !own_full.contains(*lane);
                (0..lists.len() as u32)
                    .filter(behind)
                    .for_each(|lane| self.lane(lane).queue.set_lacked(reached));
            }
            again |= self.relax_flags(lists, shut.is_some(), wakers);
            if !again && !self.slots.any_fresh() {
                return true;
            }
        }
    }

    fn has_own_room(&self, lane: u32) -> bool {
        let home = lane.checked_sub(1);
        home.is_some_and(|home| self.budget.share(home as usize).load().own_lack().is_none())
    }

    /// Lane, age and slot of the oldest queued request, lanes that are full
    /// aside, and those too young to be compared with all that are older.
    fn oldest(&self, lists: &mut Lists, young: u64, own_full: &OwnFull) -> Option<(u32, u64, u32)> {
        let lanes = 0..lists.len() as u32;
        lanes
            .filter(|lane| !own_full.contains(*lane))
            .filter_map(|lane| {
                let (age, slot) = lists.head(&self.slots, lane as usize)?;
                (age < young).then_some((lane, age, slot))
            })
            .min_by_key(|(_, age, _)| *age)
    }

    /// Clears the flags that nothing demands any more. True if an arrival came
    /// meanwhile that this turn must look at.
    fn relax_flags(&self, lists: &Lists, shut: bool, wakers: &mut Wakers) -> bool {
        let closed = if shut { I } else { 0 };
        let mut again = false;
        for (home, share) in self.budget.shares().enumerate() {
            let queue = if lists.is_empty(home + 1) { 0 } else { N };
            match share.relax(closed | queue) {
                Relaxed::Already => (),
                Relaxed::Touched(_) => again = true,
                Relaxed::Cleared(word) => wakers.opened(word),
            }
        }
        again
    }

    /// The gate was stopped: wakes everyone who waits, to be told so.
    fn dismiss(&self, lists: &mut Lists, wakers: &mut Wakers) -> bool {
        for lane in 0..lists.len() {
            while let Some((_, slot)) = lists.head(&self.slots, lane) {
                if wakers.is_full() {
                    return false;
                }
                wakers.push(self.slots.slot(slot).waker.take());
                lists.pop(&self.slots, lane);
            }
        }
        true
    }

    /// Nobody enters or queues any more.
    pub(crate) fn shut(&self) {
        // STOP, Release: whoever is woken for it sees it.
        self.stopped.swap(true, Ordering::AcqRel);
        self.budget.set_everywhere(I);
    }

    /// Waits until no turn is wanted or running.
    pub(crate) fn settle(&self) {
        match self.dispatch {
            Dispatch::Manual => self.run_wanted(),
            _ => {
                while !self.turn.is_idle() {
                    crate::sync::thread::yield_now();
                }
            }
        }
    }
}

/// Lanes whose own limit is reached in this pass: 1 + 1024 of them at most.
#[derive(Default)]
struct OwnFull([u64; 17]);

impl OwnFull {
    fn add(&mut self, lane: u32) {
        self.0[lane as usize / 64] |= 1 << (lane % 64);
    }

    fn contains(&self, lane: u32) -> bool {
        self.0[lane as usize / 64] >> (lane % 64) & 1 == 1
    }

    fn any(&self, f: impl Fn(u32) -> bool) -> bool {
        let words = self.0.iter().enumerate();
        words
            .flat_map(|(at, word)| bits(*word).map(move |bit| (at * 64 + bit) as u32))
            .any(f)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::arrive::Arrival;
    use crate::limits::Settings;

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            // Relaxed: one thread.
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_turn_that_fails_leaves_nobody_waiting() {
        let settings = Settings {
            engine_request_limit: Some(1),
            engine_request_waiting_limit: Some(1),
            request_queue_limit: Some(1),
        };
        let shared = Shared::new(settings, Dispatch::Manual, true).unwrap();
        let hold = shared.enter_at_once(None).unwrap();
        let Ok(Arrival::Queued(place)) = shared.request(None) else {
            panic!("it should queue");
        };
        let [waiter, listener] = [(); 2].map(|()| Arc::new(Woken(AtomicBool::new(false))));
        let seen = shared.listen();
        assert!(
            shared
                .poll_room(seen, &Arc::clone(&listener).into())
                .is_pending()
        );
        assert!(
            shared
                .poll_take(place, &Arc::clone(&waiter).into())
                .is_pending()
        );
        // The lists know no lane: the turn cannot go on.
        shared.within_turn(|_, lists| *lists = Lists::new(0));
        shared.run_wanted();
        assert!(shared.is_stopped());
        for woken in [waiter, listener] {
            assert!(woken.0.load(Ordering::Relaxed));
        }
        shared.cancel(place);
        shared.give_back(hold);
    }
}
