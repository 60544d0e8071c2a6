//! Who writes which cache lines: built with `--cfg tidegate_stall`, run by
//! `.ci/test stalled`.
#![cfg(tidegate_stall)]

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;

use common::*;
use tidegate::Gate;
use tidegate::stall::hooked;

/// Two neighbouring lines are fetched together on x86.
const LINES: usize = 128;

type Written = BTreeSet<usize>;

/// Lines that each of so many threads writes, all of them alive until the last is
/// done: a thread's own line is the next one's when it has ended.
fn written(threads: u32, operations: impl Fn(u32) + Sync) -> Vec<Written> {
    let all_done = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let (operations, all_done) = (&operations, &all_done);
                scope.spawn(move || {
                    let lines = Rc::new(RefCell::new(Written::new()));
                    let hook = Rc::clone(&lines);
                    let hook = move |step: tidegate::stall::Step| {
                        if step.writes() {
                            hook.borrow_mut().insert(step.address / LINES);
                        }
                    };
                    hooked(hook, || operations(number));
                    all_done.wait();
                    lines.take()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
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
    apart(&written(8, |rank| direct(&gate, Some(rank))));
}

#[test]
fn owned_permits_write_no_line_of_each_other() {
    let gate = ranked(2, 2, 2, 0..8);
    apart(&written(8, |rank| {
        let mut permit = gate.try_admit_owned(Some(rank)).unwrap();
        permit.first_token();
    }));
}

#[test]
fn a_rank_writes_its_word_and_its_threads_counters_alone() {
    let gate = ranked(2, 2, 2, 0..8);
    let written = written(2, |_| drop(gate.try_admit(Some(3)).unwrap()));
    let [one, other] = &written[..] else {
        panic!("two threads")
    };
    assert_eq!((one.len(), other.len()), (2, 2), "{written:?}");
    let both = one.intersection(other).count();
    assert_eq!(
        both, 1,
        "the word; counters are each thread's own: {written:?}"
    );
}

#[test]
fn refusals_of_different_threads_write_no_line_of_each_other() {
    let gate = ranked(1, 1, 1, 0..2);
    let _full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let _queued = [queue(&gate, Some(0)), queue(&gate, Some(1))];
    gate.settle();
    for rank in [Some(0), None] {
        apart(&written(8, |_| refused(&gate, rank)));
    }
}
