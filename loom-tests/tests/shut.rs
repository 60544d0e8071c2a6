//! Newcomers that meet the flags of a turn that has not run, or never will.
#![cfg(tidegate_loom)]

use loom::thread;
use tidegate::model::{enter_looking, leave};
use tidegate::{AdmissionOwned, Limit, Rejection};
use tidegate_loom_tests::{
    check, enter, gate, granted, handle, idle, manual, queue, settings, with_ranks,
};

/// The engine limit that a refusal names, and whether it is the worker's.
fn named(refusal: &Rejection) -> (Limit, bool) {
    let overload = refusal.overload().expect("nobody stopped the gate");
    (overload.limit, overload.of_worker)
}

#[test]
fn two_who_look_past_the_flags_leave_the_queued_one_its_capacity() {
    check(3, "room for two, one of them queued: one may enter", || {
        let gate = handle(with_ranks(manual(1, 1, 1)));
        let full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
        let ticket = queue(&gate, None);
        drop(full);
        let other = gate.clone();
        let thread = thread::spawn(move || enter_looking(&other, 1));
        let mine = enter_looking(&gate, 0);
        let both = [mine, thread.join().unwrap()].into_iter().flatten();
        let both: Vec<_> = both.collect();
        assert!(both.len() < 2, "one is the queued one's");
        gate.settle();
        drop(granted(ticket));
        both.into_iter().for_each(|entered| leave(&gate, entered));
        idle(&gate);
    });
}

#[test]
fn two_who_look_past_the_flags_leave_what_is_owed() {
    check(
        3,
        "room for one under the new limit, tokens for two",
        || {
            let gate = handle(with_ranks(manual(2, 2, 0)));
            let [first, second, third] = [Some(0), Some(0), Some(1)].map(|rank| enter(&gate, rank));
            gate.set_limits(settings(1, 1, 0)).unwrap();
            // Three run where two may; then one does, and no turn has run.
            drop((first, third));
            let other = gate.clone();
            let thread = thread::spawn(move || enter_looking(&other, 1));
            let mine = gate.try_admit_owned(None).ok();
            let other = thread.join().unwrap();
            assert!(mine.is_none() || other.is_none(), "two run, and two may");
            drop((second, mine));
            if let Some(entered) = other {
                leave(&gate, entered);
            }
            idle(&gate);
        },
    );
}

#[test]
fn who_finds_room_behind_its_flags_is_not_left_to_a_turn() {
    check(3, "nobody who freed it is still there", || {
        let gate = handle(manual(2, 2, 1));
        let full = [enter(&gate, None), enter(&gate, None)];
        let other = gate.clone();
        let thread = thread::spawn(move || other.request_owned(None).unwrap());
        drop(full);
        let silently = gate.is_settled();
        let arrival = thread.join().unwrap();
        if silently {
            assert!(
                matches!(arrival, AdmissionOwned::Admitted(_)),
                "{arrival:?}"
            );
        }
        drop(arrival);
        idle(&gate);
    });
}

#[test]
fn an_idle_rank_is_open_while_another_ranks_turn_is_due() {
    check(
        3,
        "who waits for its own rank keeps nobody else out",
        || {
            let gate = handle(with_ranks(manual(1, 1, 2)));
            let holder = enter(&gate, Some(0));
            let first = queue(&gate, Some(0));
            let other = gate.clone();
            let thread = thread::spawn(move || other.request_owned(Some(0)));
            drop(holder);
            let newcomer = gate.try_admit(Some(1));
            assert!(newcomer.is_ok(), "nobody wants that rank: {newcomer:?}");
            drop(newcomer);
            let second = thread.join().unwrap();
            gate.settle();
            drop((granted(first), second));
            idle(&gate);
        },
    );
}

#[test]
fn who_stays_behind_is_told_what_the_queue_lacks() {
    check(3, "not the limit that happens to be nearest", || {
        let gate = handle(manual(4, 2, 1));
        let mut full = [enter(&gate, None), enter(&gate, None)];
        // It lacks a waiting place; two come free, and no turn runs.
        let ticket = queue(&gate, None);
        let other = gate.clone();
        let thread = thread::spawn(move || {
            let refusal = other.try_admit_owned(None).expect_err("somebody is queued");
            assert_eq!(named(&refusal), (Limit::EngineRequestWaiting, true));
        });
        full.iter_mut().for_each(|permit| permit.first_token());
        thread.join().unwrap();
        gate.settle();
        drop((granted(ticket), full));
        idle(&gate);
    });
}

#[test]
fn the_turn_says_anew_what_a_lane_lacks() {
    check(3, "its rank's room came, the worker's went", || {
        let gate = handle(with_ranks(manual(2, 2, 1)));
        let [first, _second] = [enter(&gate, Some(0)), enter(&gate, Some(0))];
        let [third, fourth] = [enter(&gate, Some(1)), enter(&gate, None)];
        // The older lacks the worker's room alone, the younger first its rank's.
        let older = queue(&gate, None);
        let younger = queue(&gate, Some(0));
        gate.settle();
        drop(first);
        gate.settle();
        let _older = granted(older);
        let other = gate.clone();
        let thread = thread::spawn(move || {
            let refusal = other
                .try_admit_owned(Some(0))
                .expect_err("somebody is queued");
            assert_eq!(named(&refusal), (Limit::EngineRequest, true));
        });
        drop((third, fourth));
        thread.join().unwrap();
        gate.settle();
        drop(granted(younger));
    });
}

#[test]
fn flags_of_nobody_shut_nobody_out() {
    check(
        3,
        "the queued one left, no turn has cleared its flags",
        || {
            let gate = handle(gate(1, 1, 1));
            let holder = enter(&gate, None);
            let ticket = queue(&gate, None);
            let thread = thread::spawn(move || ticket.cancel());
            drop(holder);
            thread.join().unwrap();
            drop(enter(&gate, None));
            idle(&gate);
        },
    );
}
