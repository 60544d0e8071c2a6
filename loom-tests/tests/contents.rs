//! What a request did before it gave its capacity back is seen by whoever enters
//! on it, however it got there.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use tidegate_loom_tests::{
    check, enter, granted, handle, idle, look, manual, queue, ranked, with_ranks,
};

/// Written by who holds the last place, then by who gets it.
struct Note(UnsafeCell<u32>);

// SAFETY: only touched by who holds the one place: what the models check.
unsafe impl Sync for Note {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Note {}

impl Note {
    fn new() -> Arc<Note> {
        Arc::new(Note(UnsafeCell::new(0)))
    }

    fn write(&self) {
        // SAFETY: the caller holds the one place.
        self.0.with_mut(|note| unsafe { *note += 1 });
    }
}

#[test]
fn who_enters_at_once_sees_what_the_last_holder_did() {
    check(4, "one word: release, then the newcomer's step", || {
        let gate = handle(ranked(1, 1, 0));
        let holder = enter(&gate, Some(0));
        let notes = Note::new();
        let theirs = notes.clone();
        let releaser = thread::spawn(move || {
            theirs.write();
            drop(holder);
        });
        if let Ok(permit) = gate.try_admit(Some(0)) {
            notes.write();
            drop(permit);
        }
        releaser.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn who_enters_on_another_ranks_capacity_sees_it_too() {
    check(4, "a token put down here is taken from there", || {
        let gate = handle(ranked(1, 1, 0));
        let holder = enter(&gate, None);
        let _busy = enter(&gate, None);
        let notes = Note::new();
        let theirs = notes.clone();
        let other = gate.clone();
        let newcomer = thread::spawn(move || {
            if let Ok(_permit) = other.try_admit(Some(1)) {
                theirs.write();
            }
        });
        notes.write();
        drop(holder);
        newcomer.join().unwrap();
    });
}

#[test]
fn who_was_offered_capacity_sees_what_the_releaser_did() {
    check(3, "three threads: release, turn, and ticket", || {
        let gate = handle(with_ranks(manual(1, 1, 1)));
        let _busy = enter(&gate, None);
        let holder = enter(&gate, Some(0));
        let mut ticket = queue(&gate, Some(1));
        let notes = Note::new();
        let theirs = notes.clone();
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        let releaser = thread::spawn(move || {
            theirs.write();
            drop(holder);
        });
        if let Some(permit) = look(&mut ticket) {
            notes.write();
            drop((permit, turn.join(), releaser.join()));
            return;
        }
        turn.join().unwrap();
        releaser.join().unwrap();
        gate.settle();
        drop(granted(ticket));
        notes.write();
    });
}

#[test]
fn who_was_offered_capacity_sees_what_the_offering_thread_did() {
    check(
        4,
        "release and turn in one thread, the ticket in another",
        || {
            let gate = handle(ranked(1, 1, 1));
            let _busy = enter(&gate, None);
            let holder = enter(&gate, Some(0));
            let mut ticket = queue(&gate, Some(1));
            let notes = Note::new();
            let theirs = notes.clone();
            let looker = thread::spawn(move || {
                // Held while it writes: giving it back would acquire as much.
                let permit = look(&mut ticket);
                if permit.is_some() {
                    theirs.write();
                }
                (permit, ticket)
            });
            notes.write();
            drop(holder);
            drop(looker.join().unwrap());
        },
    );
}

#[test]
fn who_was_offered_what_came_during_the_turn_sees_what_its_holder_did() {
    check(3, "the turn's fence was before it", || {
        let gate = handle(with_ranks(manual(1, 1, 1)));
        let (first, holder) = (enter(&gate, Some(0)), enter(&gate, Some(1)));
        let (_older, mut ticket) = (queue(&gate, None), queue(&gate, None));
        // A turn is wanted, and has one place to offer.
        drop(first);
        let notes = Note::new();
        let theirs = notes.clone();
        let other = gate.clone();
        let turn = thread::spawn(move || other.settle());
        let releaser = thread::spawn(move || {
            theirs.write();
            drop(holder);
        });
        let permit = look(&mut ticket);
        if permit.is_some() {
            notes.write();
        }
        turn.join().unwrap();
        releaser.join().unwrap();
        drop((permit, ticket));
    });
}
