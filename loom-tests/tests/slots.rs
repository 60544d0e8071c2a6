//! The queue's slots alone: who comes, who leaves, and the turn.
#![cfg(tidegate_loom)]

use std::sync::Arc;
use std::task::Waker;

use loom::cell::UnsafeCell;
use loom::thread;
use tidegate::model::{Left, Place, Slots};
use tidegate_loom_tests::check;

fn slots() -> Arc<Slots> {
    Arc::new(Slots::new())
}

fn arrive(slots: &Slots, lane: u32) -> Place {
    slots.occupy(slots.acquire(), lane)
}

/// What the turn does with the oldest: whether the count was left to it.
fn offer(slots: &Slots, place: Place) -> Option<bool> {
    slots.offer(place, 7).then(|| {
        drop(slots.take_waker(place));
        slots.let_go(place)
    })
}

#[test]
fn an_arrival_is_seen_with_its_lane() {
    check(5, "the mark publishes the slot", || {
        let slots = slots();
        let slot = slots.acquire();
        let other = Arc::clone(&slots);
        let turn = thread::spawn(move || other.drain());
        let place = slots.occupy(slot, 7);
        let mut seen = turn.join().unwrap();
        seen.extend(slots.drain());
        assert_eq!(seen, [(place.age(), 7)]);
    });
}

#[test]
fn whoever_has_arrived_is_seen_though_a_neighbour_is_slow() {
    check(5, "two marks in one word, and one summary", || {
        let slots = slots();
        let other = Arc::clone(&slots);
        let thread = thread::spawn(move || arrive(&other, 1));
        let mine = arrive(&slots, 2);
        assert!(slots.any_fresh());
        assert!(slots.drain().contains(&(mine.age(), 2)));
        thread.join().unwrap();
    });
}

#[test]
fn marks_of_two_arrivals_both_outlast_a_look() {
    check(5, "the turn looks as one comes after the other", || {
        let slots = slots();
        let own = [slots.acquire(), slots.acquire()];
        let other = Arc::clone(&slots);
        let turn = thread::spawn(move || other.drain());
        let places = own.map(|slot| slots.occupy(slot, 0));
        let mut seen = turn.join().unwrap();
        seen.extend(slots.drain());
        for place in places {
            assert!(seen.contains(&(place.age(), 0)));
        }
    });
}

#[test]
fn of_those_with_an_age_none_is_missing_before_another() {
    check(5, "two marks in different words, read in turn", || {
        let slots = slots();
        let own: Vec<_> = (0..3).map(|_| slots.acquire()).collect();
        let other = Arc::clone(&slots);
        let turn = thread::spawn(move || (other.next_age(), other.drain()));
        // Of the first chunk, and of the second.
        let (older, younger) = (slots.occupy(own[0], 1), slots.occupy(own[2], 1));
        let (young, seen) = turn.join().unwrap();
        let sees = |place: Place| seen.contains(&(place.age(), 1));
        assert!(sees(older) || !sees(younger) || younger.age() >= young);
    });
}

#[test]
fn a_slot_left_under_an_offer_is_freed_once() {
    check(5, "cancel against offer, at one slot", || {
        let slots = slots();
        let place = arrive(&slots, 0);
        let other = Arc::clone(&slots);
        let leaver = thread::spawn(move || other.leave(place));
        let offered = offer(&slots, place);
        match (leaver.join().unwrap(), offered) {
            (Left::Queued, None) => (),
            (Left::Offered { share: 7, settle }, Some(turn_settles)) => {
                assert!(settle != turn_settles, "the count is settled once");
            }
            other => panic!("{other:?}"),
        }
        // Both slots of the first chunk are free, and different.
        let mut free = [slots.acquire(), slots.acquire()];
        free.sort_unstable();
        assert_eq!(free, [0, 1]);
    });
}

#[test]
fn an_offer_taken_up_under_the_turn_is_settled_once() {
    check(5, "take against let go, at one slot", || {
        let slots = slots();
        let place = arrive(&slots, 0);
        let other = Arc::clone(&slots);
        let taker = thread::spawn(move || other.take(place));
        let turn_settles = offer(&slots, place).unwrap();
        match taker.join().unwrap().or_else(|| slots.take(place)) {
            Some(Left::Offered { share: 7, settle }) => assert!(settle != turn_settles),
            other => panic!("{other:?}"),
        }
        let mut free = [slots.acquire(), slots.acquire()];
        free.sort_unstable();
        assert_eq!(free, [0, 1]);
    });
}

#[test]
fn the_turn_takes_no_waker_of_a_slots_next_request() {
    check(4, "a newcomer in a slot that the turn still holds", || {
        let slots = slots();
        // No other slot is free.
        let place = arrive(&slots, 0);
        let _taken = slots.acquire();
        let other = Arc::clone(&slots);
        let thread = thread::spawn(move || {
            other.leave(place);
            let next = arrive(&other, 0);
            other.register(next, Waker::noop());
            next
        });
        offer(&slots, place);
        let next = thread.join().unwrap();
        assert!(slots.take_waker(next).is_some(), "it would sleep for ever");
        assert_eq!(slots.leave(next), Left::Queued);
    });
}

#[test]
fn an_old_reference_to_a_slot_offers_its_next_request_nothing() {
    check(4, "ages tell who is who", || {
        let slots = slots();
        let place = arrive(&slots, 0);
        let other = Arc::clone(&slots);
        let thread = thread::spawn(move || {
            other.leave(place);
            arrive(&other, 0)
        });
        offer(&slots, place);
        let next = thread.join().unwrap();
        assert_eq!(slots.leave(next), Left::Queued);
    });
}

/// What the owner of each slot did there.
struct Owned {
    slots: Slots,
    notes: [UnsafeCell<u32>; 6],
}

// SAFETY: a note is only touched by its slot's owner: what the models check.
unsafe impl Sync for Owned {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Owned {}

impl Owned {
    fn new() -> Arc<Owned> {
        Arc::new(Owned {
            slots: Slots::new(),
            notes: std::array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    fn use_one(&self) {
        let slot = self.slots.acquire();
        // SAFETY: the slot is ours.
        self.notes[slot as usize].with_mut(|note| unsafe { *note += 1 });
        self.slots.release(slot);
    }
}

#[test]
fn a_free_slot_has_one_owner_who_sees_what_the_last_one_did() {
    check(4, "two who take slots and put them back", || {
        let owned = Owned::new();
        owned.use_one();
        let other = Arc::clone(&owned);
        let thread = thread::spawn(move || {
            other.use_one();
            other.use_one();
        });
        owned.use_one();
        thread.join().unwrap();
    });
}

#[test]
fn the_first_slots_are_made_once() {
    check(4, "two who find no slot at all", || {
        let owned = Owned::new();
        let other = Arc::clone(&owned);
        let thread = thread::spawn(move || other.slots.acquire());
        let mine = owned.slots.acquire();
        let theirs = thread.join().unwrap();
        assert_ne!(mine, theirs);
        assert_eq!(owned.slots.chunks(), 1, "room for more than they need");
    });
}

#[test]
fn a_popper_that_slept_takes_no_slot_that_is_in_use() {
    check(4, "the same first slot, and another second", || {
        let slots = slots();
        let (first, second) = (slots.acquire(), slots.acquire());
        slots.release(second);
        slots.release(first);
        let other = Arc::clone(&slots);
        let thread = thread::spawn(move || other.acquire());
        let (top, below) = (slots.acquire(), slots.acquire());
        slots.release(top);
        let mut used = [below, thread.join().unwrap(), slots.acquire()];
        used.sort_unstable();
        assert!(used.windows(2).all(|pair| pair[0] != pair[1]), "{used:?}");
    });
}
