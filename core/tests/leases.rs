//! The last handle goes while owned permits and tickets are given back: what they
//! touch must still be there.

mod common;

use std::sync::Barrier;
use std::thread;

use common::*;
use tidegate::{AdmissionOwned, Dispatch, Gate};

#[test]
fn the_last_handle_may_go_as_the_last_permits_do() {
    for round in 0..200 {
        let dispatch = [Dispatch::Assisted, Dispatch::Thread][round % 2];
        let builder = Gate::builder().settings(settings(2, 2, 2));
        let gate = builder.dispatch(dispatch).build().unwrap();
        let mut permits: Vec<_> = (0..2)
            .map(|_| gate.try_admit_owned(None).unwrap())
            .collect();
        let Ok(AdmissionOwned::Queued(ticket)) = gate.request_owned(None) else {
            panic!("it is full");
        };
        let start = &Barrier::new(4);
        thread::scope(|scope| {
            for mut permit in permits.drain(..) {
                scope.spawn(move || {
                    start.wait();
                    permit.first_token();
                });
            }
            scope.spawn(move || {
                start.wait();
                drop(ticket.wait().unwrap());
            });
            start.wait();
            drop(gate);
        });
    }
}

#[test]
fn permits_taken_from_clones_that_have_gone_stay_good() {
    let gate = gate(64, 64, 0);
    thread::scope(|scope| {
        for _ in 0..8 {
            let gate = gate.clone();
            scope.spawn(move || {
                let permits: Vec<_> = (0..8)
                    .map(|_| gate.try_admit_owned(None).unwrap())
                    .collect();
                drop(gate);
                // Each by another thread than the one that took it.
                for mut permit in permits {
                    thread::spawn(move || permit.first_token());
                }
            });
        }
    });
    eventually("all have gone", || held(&gate) == (0, 0, 0));
}
