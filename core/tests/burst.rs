//! More requests than fit, all at once: exactly the right number pass.

mod common;

use std::sync::Barrier;
use std::thread;

use common::*;
use tidegate::{Admission, Lane, Permit, Ticket};

#[test]
fn of_a_burst_of_five_hundred_exactly_thirty_two_pass() {
    let gate = gate(16, 16, 16);
    let start = Barrier::new(10);
    let (admitted, queued): (Vec<Vec<Permit<'_>>>, Vec<Vec<Ticket<'_>>>) = thread::scope(|scope| {
        let clients: Vec<_> = (0..10)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let (mut admitted, mut queued) = (Vec::new(), Vec::new());
                    for _ in 0..50 {
                        match gate.request(None) {
                            Ok(Admission::Admitted(permit)) => admitted.push(permit),
                            Ok(Admission::Queued(ticket)) => queued.push(ticket),
                            Err(_) => {}
                        }
                    }
                    (admitted, queued)
                })
            })
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).unzip()
    });
    let count = |lists: Vec<usize>| lists.into_iter().sum::<usize>();
    assert_eq!(count(admitted.iter().map(Vec::len).collect()), 16);
    assert_eq!(count(queued.iter().map(Vec::len).collect()), 16);
    assert_eq!(held(&gate), (16, 16, 16));
    assert_eq!(lane(&gate, Lane::Unspecified).rejected(), 468);
    drop((admitted, queued));
    idle_check(&gate);
}

#[test]
fn two_hundred_over_capacity_from_several_threads_all_end() {
    let gate = ranked(2, 2, 3, [0, 1]);
    thread::scope(|scope| {
        for client in 0..8_u32 {
            let gate = &gate;
            scope.spawn(move || {
                for turn in 0..25 {
                    let rank = (turn % 3 != 0).then_some(client % 2);
                    drop(gate.admit_blocking(rank));
                }
            });
        }
    });
    gate.settle();
    let snapshot = gate.snapshot();
    assert_eq!(snapshot.total(|lane| lane.received), 200);
    assert_eq!(snapshot.total(|lane| lane.cancelled), 0);
    idle_check(&gate);
}
