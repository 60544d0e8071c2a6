//! Handles and leases: who finds that none is left is alone with the gate.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use tidegate::model::Holders;
use tidegate_loom_tests::check;

/// Read by who has a lease, written by who is alone.
struct Kept {
    holders: Holders,
    gate: UnsafeCell<u32>,
}

// SAFETY: written by who has found that it is alone: what the models check.
unsafe impl Sync for Kept {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Kept {}

impl Kept {
    fn new() -> Arc<Kept> {
        Arc::new(Kept {
            holders: Holders::new(),
            gate: UnsafeCell::new(0),
        })
    }

    /// As an owned permit does at its end.
    fn give_back(&self) {
        // SAFETY: there is a lease.
        self.gate
            .with(|gate| unsafe { std::hint::black_box(*gate) });
        self.holders.give_back();
    }

    fn free(&self) {
        // SAFETY: nobody has a handle or a lease.
        self.gate.with_mut(|gate| unsafe { *gate += 1 });
    }
}

#[test]
fn who_finds_no_lease_out_sees_what_their_holders_did() {
    check(5, "two give back as the last handle goes", || {
        let kept = Kept::new();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                kept.holders.lease();
                let kept = Arc::clone(&kept);
                thread::spawn(move || kept.give_back())
            })
            .collect();
        assert!(kept.holders.drop_handle());
        if kept.holders.no_lease_is_out() {
            kept.free();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(kept.holders.are_gone());
    });
}

#[test]
fn the_last_handle_sees_the_leases_that_another_took() {
    check(5, "one takes a lease and drops its handle", || {
        let kept = Kept::new();
        kept.holders.add_handle();
        let other = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            other.holders.lease();
            let last = other.holders.drop_handle();
            assert!(!last || !other.holders.no_lease_is_out(), "its own is out");
            other.give_back();
        });
        if kept.holders.drop_handle() && kept.holders.no_lease_is_out() {
            kept.free();
        }
        thread.join().unwrap();
    });
}

#[test]
fn the_dispatcher_ends_when_handles_and_leases_have_gone() {
    check(5, "it looks as both go", || {
        let kept = Kept::new();
        let other = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            other.holders.lease();
            other.holders.drop_handle();
            other.give_back();
        });
        if kept.holders.are_gone() {
            kept.free();
        }
        thread.join().unwrap();
        assert!(kept.holders.are_gone());
    });
}
