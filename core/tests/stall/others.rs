//! What every other thread must still be able to do while one stands still.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tidegate::stall::hooked;
use tidegate::{Admission, Gate, Lane, Permit, Ticket};

use super::{Mode, Q, R, RANKS};
use crate::common::poll;

/// More steps than any operation takes, a bounded turn included.
const BOUND: u64 = 5_000;
/// How long what may need a dispatcher thread may take.
const SOON: Duration = Duration::from_secs(5);

/// Runs one operation, which must end within `BOUND` steps.
fn bounded<T>(what: &str, operation: impl FnOnce() -> T) -> T {
    let steps = Rc::new(Cell::new(0));
    let count = Rc::clone(&steps);
    let result = hooked(
        move |_| {
            count.set(count.get() + 1);
            assert!(count.get() < 1_000 * BOUND, "an operation without end");
        },
        operation,
    );
    assert!(steps.get() <= BOUND, "{what} took {} steps", steps.get());
    result
}

fn soon(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::yield_now();
    }
}

const LANES: [Option<u32>; 3] = [Some(1), Some(0), None];

fn try_admit<'g>(gate: &'g Gate, rank: Option<u32>) -> Option<Permit<'g>> {
    bounded("try_admit", || gate.try_admit(rank)).ok()
}

/// Manual gates have no dispatcher but this; unless it is the one that stands still.
fn dispatch(gate: &Gate, mode: Mode) {
    if mode == Mode::Manual && !gate.turn_runs() {
        bounded("a turn", || gate.settle());
    }
}

/// Everything that a gate is there for.
pub fn everything<'g>(
    gate: &'g Gate,
    mode: Mode,
    mut permits: Vec<Permit<'g>>,
    tickets: Vec<Ticket<'g>>,
) {
    each_operation_ends(gate, &mut permits);
    for permit in permits {
        bounded("drop of a permit", || drop(permit));
    }
    those_who_wait_are_served(gate, mode, tickets);
    let held = what_is_free_can_be_had(gate, mode);
    the_queue_takes_what_it_should(gate);
    drop(held);
}

fn each_operation_ends(gate: &Gate, permits: &mut [Permit<'_>]) {
    for rank in LANES {
        drop(try_admit(gate, rank));
        match bounded("request", || gate.request(rank)) {
            Ok(Admission::Admitted(mut permit)) => {
                bounded("first_token", || permit.first_token());
                bounded("drop", || drop(permit));
            }
            Ok(Admission::Queued(mut ticket)) => {
                let answer = bounded("poll", || poll(&mut ticket));
                if let Poll::Ready(permit) = answer {
                    bounded("drop", || drop(permit));
                } else {
                    bounded("cancel", || ticket.cancel());
                }
            }
            Err(_) => {}
        }
    }
    for permit in permits {
        bounded("first_token", || permit.first_token());
    }
}

/// All permits are back, but for one that the stopped thread may hold.
fn those_who_wait_are_served<'g>(gate: &'g Gate, mode: Mode, mut tickets: Vec<Ticket<'g>>) {
    let mut served = Vec::new();
    soon("those who wait are served", || {
        dispatch(gate, mode);
        tickets.retain_mut(|ticket| match poll(ticket) {
            Poll::Ready(permit) => {
                let mut permit = permit.expect("the gate was not stopped");
                permit.first_token();
                served.push(permit);
                false
            }
            Poll::Pending => true,
        });
        // Only a turn that stands still may delay them.
        if gate.turn_runs() && mode != Mode::Thread {
            return true;
        }
        for rank in LANES {
            drop(try_admit(gate, rank));
        }
        tickets.is_empty()
    });
    if !tickets.is_empty() {
        lanes_where_nobody_waits_are_open(gate, served.len());
    }
    for ticket in tickets {
        bounded("cancel", || ticket.cancel());
    }
}

/// A turn stands still and some wait for it: whoever passes over none of them
/// enters directly.
fn lanes_where_nobody_waits_are_open(gate: &Gate, served: usize) {
    let seen = gate.snapshot();
    let spare = (RANKS * R) as usize - 1 - served;
    let spare = spare.saturating_sub(seen.worker.queued as usize);
    let mut entered = Vec::new();
    let mut room = 0;
    for rank in LANES {
        let lane = seen.lane(rank.map_or(Lane::Unspecified, Lane::Rank));
        let lane = lane.expect("the lane exists");
        if lane.queued == 0 {
            room += rank.map_or(spare, |_| R as usize - lane.running as usize);
            while let Some(mut permit) = try_admit(gate, rank) {
                bounded("first_token", || permit.first_token());
                entered.push(permit);
            }
        }
    }
    let (entered, expected) = (entered.len(), spare.min(room));
    assert!(entered >= expected, "{entered} of {expected} in {seen:?}");
}

fn what_is_free_can_be_had(gate: &Gate, mode: Mode) -> Vec<Permit<'_>> {
    let mut held = Vec::new();
    let capacity = (RANKS * R) as usize;
    let what = "all that is free enters directly";
    let deadline = Instant::now() + SOON;
    loop {
        dispatch(gate, mode);
        for rank in LANES {
            while let Some(mut permit) = try_admit(gate, rank) {
                permit.first_token();
                held.push(permit);
            }
        }
        assert!(held.len() <= capacity, "the limit is exceeded");
        if held.len() + 1 >= capacity {
            return held;
        }
        assert!(
            Instant::now() < deadline,
            "never happened: {what}: {} of {capacity}, {:?}",
            held.len(),
            gate.snapshot().worker
        );
        std::thread::yield_now();
    }
}

/// Everything runs; the queue has all its places, but for one that the stopped
/// thread may hold, and one that its call may be about to take or leave.
fn the_queue_takes_what_it_should(gate: &Gate) {
    let (mut queued, mut entered) = (Vec::new(), Vec::new());
    for rank in LANES {
        loop {
            match bounded("request", || gate.request(rank)) {
                Ok(Admission::Queued(ticket)) => queued.push(ticket),
                // Flags that a turn had still to clear kept it out before.
                Ok(Admission::Admitted(permit)) => entered.push(permit),
                Err(_) => break,
            }
            assert!(entered.len() <= 1, "more than one was missing");
            assert!(queued.len() <= (RANKS * Q) as usize, "the queue overflows");
        }
    }
    assert!(
        queued.len() + 1 >= (RANKS * Q) as usize,
        "only {} could queue",
        queued.len()
    );
    for ticket in queued {
        bounded("cancel", || ticket.cancel());
    }
}
