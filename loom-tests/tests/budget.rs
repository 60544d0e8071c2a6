//! The worker's capacity over its shares, alone.
#![cfg(tidegate_loom)]

use std::sync::Arc;

use loom::thread;
use tidegate::model::Budget;
use tidegate_loom_tests::check;

fn budget(ranks: usize, running: u32, waiting: u32) -> Arc<Budget> {
    Arc::new(Budget::new(ranks, running, waiting))
}

#[test]
fn a_token_that_moves_between_shares_is_never_overlooked() {
    check(4, "the scan trap: full here, then full there", || {
        let budget = budget(2, 1, 1);
        let first = budget.enter_unranked(0).unwrap();
        budget.first_token(first);
        let other = Arc::clone(&budget);
        let scan = thread::spawn(move || other.none_running_free());
        budget.leave_unranked(0);
        budget.enter_unranked(1).unwrap();
        assert!(!scan.join().unwrap(), "one was free at all times");
    });
}

#[test]
fn a_token_that_comes_back_is_not_overlooked_either() {
    check(
        3,
        "the scan trap with equal values before and after",
        || {
            let budget = budget(2, 1, 1);
            let first = budget.enter_unranked(0).unwrap();
            budget.first_token(first);
            let other = Arc::clone(&budget);
            let scan = thread::spawn(move || other.none_running_free());
            // Lies free at the second, then at the first, then at the second.
            budget.leave_unranked(0);
            assert!(budget.enter_ranked(1));
            budget.leave_ranked(1);
            budget.enter_unranked(0).unwrap();
            assert!(!scan.join().unwrap(), "one was free at all times");
        },
    );
}

#[test]
fn of_two_who_need_the_last_of_each_kind_one_enters() {
    check(4, "two half-takers never both lose", || {
        // One running token lies at the second share, one waiting at the first.
        let budget = budget(2, 2, 1);
        for hint in [0, 1] {
            assert_eq!(budget.enter_unranked(hint), Some(hint));
        }
        budget.first_token(0);
        assert_eq!(budget.enter_unranked(0), Some(0));
        budget.first_token(0);
        assert_eq!(budget.room(), (1, 1));
        let other = Arc::clone(&budget);
        let thread = thread::spawn(move || other.enter_ranked(1));
        let mine = budget.enter_unranked(0).is_some();
        assert!(mine != thread.join().unwrap());
        assert_eq!(budget.room(), (0, 0));
    });
}

#[test]
fn two_who_begin_at_one_share_both_find_what_they_need() {
    check(4, "tokens are neither made nor lost on the way", || {
        let budget = budget(2, 1, 1);
        let other = Arc::clone(&budget);
        let thread = thread::spawn(move || {
            let from = other.enter_unranked(0).unwrap();
            other.first_token(from);
            other.leave_unranked(from);
        });
        let from = budget.enter_unranked(0).unwrap();
        budget.first_token(from);
        budget.leave_unranked(from);
        thread.join().unwrap();
        assert_eq!(budget.room(), (2, 2));
        assert!(budget.enter_ranked(0) && budget.enter_ranked(1));
    });
}

#[test]
fn a_shrink_counts_what_is_in_somebodys_hand() {
    check(3, "a taker between two tokens, and a debt", || {
        let budget = budget(2, 2, 2);
        assert!(budget.enter_ranked(0) && budget.enter_ranked(0));
        assert_eq!(budget.enter_unranked(1), Some(1));
        // The fourth and last: its tokens lie at the second share.
        let other = Arc::clone(&budget);
        let taker = thread::spawn(move || other.enter_unranked(0).is_some());
        budget.resize(1, 1);
        assert!(!budget.balance(), "more than the limit is running");
        let entered = taker.join().unwrap();
        let held = 3 + i64::from(entered);
        assert_eq!(budget.room(), (2 - held, 2 - held));
        assert_eq!(budget.enter_unranked(1), None);
    });
}

#[test]
fn a_debt_is_paid_by_a_release_elsewhere() {
    check(3, "what comes back goes to who owes", || {
        let budget = budget(2, 2, 2);
        assert!(budget.enter_ranked(0) && budget.enter_ranked(0));
        assert!(budget.enter_ranked(1));
        let other = Arc::clone(&budget);
        let releaser = thread::spawn(move || other.leave_ranked(0));
        budget.resize(1, 1);
        let settled = budget.balance();
        assert!(budget.enter_unranked(0).is_none());
        releaser.join().unwrap();
        assert!(budget.balance() || settled);
        assert_eq!(budget.room(), (0, 0));
    });
}

#[test]
fn a_give_back_that_meets_growth_loses_no_capacity() {
    check(
        3,
        "a token too many, or one that somebody could use",
        || {
            let budget = budget(2, 2, 2);
            assert!(budget.enter_ranked(0) && budget.enter_ranked(0));
            assert!(budget.enter_ranked(1));
            let from = budget.enter_unranked(1).unwrap();
            budget.resize(1, 1);
            assert_eq!(budget.room(), (-2, -2));
            let other = Arc::clone(&budget);
            let releaser = thread::spawn(move || {
                other.first_token(from);
                other.leave_unranked(from);
            });
            budget.resize(2, 2);
            releaser.join().unwrap();
            assert!(budget.balance(), "nothing is owed");
            assert_eq!(budget.room(), (1, 1));
        },
    );
}

#[test]
fn a_newcomer_finds_a_token_that_moves() {
    check(4, "the scan trap, for one who wants to take it", || {
        let budget = budget(2, 1, 1);
        let first = budget.enter_unranked(0).unwrap();
        budget.first_token(first);
        let other = Arc::clone(&budget);
        let newcomer = thread::spawn(move || other.enter_unranked(0));
        // The newcomer scans twice: once for both tokens, once for each.
        budget.leave_unranked(0);
        for home in [1, 0] {
            if budget.enter_ranked(home) {
                budget.leave_ranked(home);
            }
        }
        budget.enter_ranked(1);
        assert!(newcomer.join().unwrap().is_some(), "one was free");
    });
}
