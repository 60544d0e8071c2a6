//! The dispatcher's turn: offers capacity to the oldest queued requests that fit.

use crate::budget::Lack;
use crate::lists::Lists;
use crate::marks::bits;
use crate::reached::Reached;
use crate::shared::Shared;
use crate::sync::{Ordering, fence};
use crate::wakers::Wakers;
use crate::word::step::{Relaxed, Who};
use crate::word::{I, N};

impl Shared {
    /// One round: offers what there is. False if it must look again, or its wakers are
    /// as many as are kept. The turn's alone.
    pub(crate) fn pass(&self, lists: &mut Lists, wakers: &mut Wakers) -> bool {
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
        let owed = self
            .budget
            .balance_and_tell(&mut |flags| wakers.opened(flags));
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
                        self.lane(lane).count_turn();
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
                    // Said behind the flag alone: whoever frees some of it rings.
                    let home = self.budget.share(lane as usize - 1);
                    if home.load().has(N) || home.set(N).own_lack().is_some() {
                        self.lane(lane).queue.set_lacked(reached);
                        own_full.add(lane);
                    }
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
            let behind = |lane: &u32| {
                // Where room has come, that is not what they lack.
                !again && !lists.is_empty(*lane as usize) && !own_full.contains(*lane)
            };
            (0..lists.len() as u32)
                .filter(behind)
                .for_each(|lane| self.lane(lane).queue.set_lacked(reached));
        }
        again |= self.relax_flags(lists, shut.is_some(), wakers);
        !again && !self.slots.any_fresh()
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
