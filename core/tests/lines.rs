//! Who writes which cache lines: built with `--cfg tidegate_stall`, run by
//! `.ci/test stalled`.
#![cfg(tidegate_stall)]

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;

use common::*;
use tidegate::Gate;
use tidegate::stall::hooked;

/// Two neighbouring lines are fetched together on x86.
const LINES: usize = 128;

type Written = BTreeSet<usize>;

/// Lines that `operations` write, on a thread of their own.
fn written(operations: impl FnOnce() + Send) -> Written {
    let lines = Arc::new(Mutex::new(Written::new()));
    let hook = Arc::clone(&lines);
    thread::scope(|scope| {
        scope.spawn(move || {
            let hook = move |step: tidegate::stall::Step| {
                if step.writes() {
                    hook.lock().unwrap().insert(step.address / LINES);
                }
            };
            hooked(hook, operations);
        });
    });
    let lines = lines.lock().unwrap();
    lines.clone()
}

fn direct(gate: &Gate, rank: Option<u32>) {
    let mut permits: Vec<_> = std::iter::from_fn(|| gate.try_admit(rank).ok()).collect();
    permits.iter_mut().for_each(|permit| permit.first_token());
    drop(permits);
    drop(gate.try_admit(rank));
}

fn refused(gate: &Gate, rank: Option<u32>) {
    assert!(gate.try_admit(rank).is_err());
    assert!(gate.request(rank).is_err());
}

#[track_caller]
fn apart(all: &[Written]) {
    for (i, one) in all.iter().enumerate() {
        assert!(!one.is_empty(), "{i} wrote something");
        for other in &all[..i] {
            let both: Vec<_> = one.intersection(other).collect();
            assert!(both.is_empty(), "both write lines {both:?}");
        }
    }
}

#[test]
fn ranks_write_no_line_of_each_other() {
    let gate = ranked(2, 2, 2, 0..8);
    let of_rank = |rank| written(|| direct(&gate, Some(rank)));
    apart(&(0..8).map(of_rank).collect::<Vec<_>>());
}

#[test]
fn a_rank_writes_its_word_and_its_threads_counters_alone() {
    let gate = ranked(2, 2, 2, 0..8);
    let once = written(|| drop(gate.try_admit(Some(3))));
    assert_eq!(once.len(), 2, "{once:?}");
    let again = written(|| drop(gate.try_admit(Some(3))));
    assert_eq!(
        once.intersection(&again).count(),
        1,
        "the word; counters are each thread's own: {once:?} {again:?}"
    );
}

#[test]
fn refusals_of_different_threads_write_no_line_of_each_other() {
    let gate = ranked(1, 1, 1, 0..2);
    let _full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let _queued = [queue(&gate, Some(0)), queue(&gate, Some(1))];
    gate.settle();
    for rank in [Some(0), None] {
        apart(&[0; 8].map(|_| written(|| refused(&gate, rank))));
    }
}
