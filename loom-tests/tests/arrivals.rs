//! Arrivals that meet at the last place.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::{AdmissionOwned, Limit, Rejection, Scope};
use tidegate_loom_tests::{check, check_apart, enter, gate, handle, idle, ranked};

#[test]
fn two_arrivals_at_the_last_slot_never_both_enter() {
    check(
        3,
        "the bound is exact, and one of two always enters",
        || {
            let gate = gate(1, 1, 0);
            let other = gate.clone();
            let thread = thread::spawn(move || other.try_admit_owned(None));
            let mine = gate.try_admit_owned(None);
            let theirs = thread.join().unwrap();
            assert!(mine.is_ok() != theirs.is_ok(), "{mine:?} {theirs:?}");
            for refusal in [&mine, &theirs]
                .into_iter()
                .filter_map(|r| r.as_ref().err())
            {
                let Rejection::Overloaded(overload) = refusal else {
                    panic!("nobody stopped the gate");
                };
                assert_eq!((overload.value, overload.counts.running), (1, 1));
            }
            drop((mine, theirs));
            idle(&gate);
        },
    );
}

#[test]
fn a_ranked_and_an_unranked_arrival_share_the_workers_last_slot() {
    check(
        3,
        "a lane of its own does not make a slot of its own",
        || {
            let gate = ranked(1, 1, 0);
            let _busy = enter(&gate, Some(0));
            let other = gate.clone();
            let thread = thread::spawn(move || other.try_admit_owned(Some(1)));
            let mine = gate.try_admit_owned(None);
            let theirs = thread.join().unwrap();
            assert!(mine.is_ok() != theirs.is_ok(), "{mine:?} {theirs:?}");
            assert_eq!(gate.snapshot().worker.running, 2);
        },
    );
}

#[test]
fn two_ranks_never_stand_in_each_others_way() {
    check_apart(3, "no false refusal while both ranks have room", || {
        let gate = ranked(1, 1, 0);
        let other = gate.clone();
        let thread = thread::spawn(move || drop(other.try_admit(Some(0)).unwrap()));
        drop(gate.try_admit(Some(1)).unwrap());
        thread.join().unwrap();
        idle(&gate);
    });
}

#[test]
fn three_arrivals_at_two_slots_leave_one_outside() {
    check(3, "a three-way meeting keeps the bound", || {
        let gate = gate(2, 2, 0);
        let arrive = || {
            let other = gate.clone();
            thread::spawn(move || other.try_admit_owned(None))
        };
        let threads = [arrive(), arrive()];
        let mine = gate.try_admit_owned(None);
        let theirs = threads.map(|thread| thread.join().unwrap());
        let entered = theirs.iter().chain([&mine]).filter(|r| r.is_ok()).count();
        assert_eq!(entered, 2);
        drop((mine, theirs));
        idle(&gate);
    });
}

#[test]
fn two_arrivals_at_the_last_queue_place_never_both_queue() {
    check(3, "a queue of one holds one", || {
        let gate = gate(1, 1, 1);
        let holder = enter(&gate, None);
        let other = gate.clone();
        let thread = thread::spawn(move || other.request_owned(None));
        let answers = [gate.request_owned(None), thread.join().unwrap()];
        let queued =
            |r: &&Result<AdmissionOwned, Rejection>| matches!(r, Ok(AdmissionOwned::Queued(_)));
        assert_eq!(answers.iter().filter(queued).count(), 1);
        for refusal in answers.iter().filter_map(|r| r.as_ref().err()) {
            assert_eq!(refusal.overload().unwrap().limit, Limit::RequestQueue);
        }
        drop((answers, holder));
        idle(&gate);
    });
}

#[test]
fn a_refusal_names_the_worker_only_where_all_of_it_is_full() {
    check(
        3,
        "capacity that moves between ranks as a third asks",
        || {
            let gate = handle(ranked(1, 1, 0));
            let holder = enter(&gate, Some(0));
            let other = gate.clone();
            let asks = thread::spawn(move || match other.try_admit(Some(0)) {
                Ok(_) => Scope::Rank(0),
                Err(refusal) => refusal.scope().expect("nobody stopped the gate"),
            });
            // At every instant at least one of two may still enter.
            drop(holder);
            let _elsewhere = gate.try_admit(Some(1)).expect("nobody else is there");
            assert_eq!(asks.join().unwrap(), Scope::Rank(0));
        },
    );
}
