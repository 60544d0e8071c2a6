//! Memory stays bounded whatever leaves, and what a queued request and a rank take.
//! One test, since the allocator counts for the whole process.

mod common;
mod heap;

use std::hint::black_box;
use std::thread;

use common::*;
use tidegate::{Admission, Dispatch, Gate};

const CANCELS: usize = 1_000_000;
/// What the heap may hold more of at the end than after a first thousand: what
/// other threads' libraries keep.
const SLACK: usize = 4 << 10;

/// Requests that queue behind a blocked head and leave, from one thread.
fn come_and_go(gate: &Gate, times: usize) {
    for turn in 0..times {
        let rank = [None, Some(0), Some(1)][turn % 3];
        match gate.request(rank) {
            Ok(Admission::Queued(ticket)) => ticket.cancel(),
            Ok(Admission::Admitted(_)) => panic!("everything is taken"),
            Err(_) => {}
        }
    }
}

/// A gate where everything is taken, with a blocked head in every lane.
fn blocked(test: impl FnOnce(&Gate)) {
    let gate = ranked(1, 1, 8, [0, 1]);
    let full = [enter(&gate, Some(0)), enter(&gate, Some(1))];
    let heads = [
        queue(&gate, None),
        queue(&gate, Some(0)),
        queue(&gate, Some(1)),
    ];
    gate.settle();
    test(&gate);
    drop(heads);
    drop(full);
    idle_check(&gate);
}

#[test]
fn memory_is_bounded() {
    let start = heap::live();
    let parts = [
        || blocked(a_million_cancellations_leave_nothing),
        || blocked(nor_do_those_of_four_threads),
        a_queued_request_is_small,
        a_rank_is_small,
    ];
    for part in parts {
        part();
        // Dispatcher threads let go of their part in their own time.
        eventually("all is freed", || heap::live() <= start + SLACK);
    }
}

fn a_million_cancellations_leave_nothing(gate: &Gate) {
    come_and_go(gate, 1000);
    heap::peak();
    let before = heap::live();
    come_and_go(gate, CANCELS);
    let peak = heap::peak() - before;
    println!("{CANCELS} cancellations behind a blocked head: at most {peak} bytes more");
    assert!(peak <= SLACK, "{peak} bytes");
}

fn nor_do_those_of_four_threads(gate: &Gate) {
    let four = |times| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || come_and_go(gate, times / 4));
            }
        });
    };
    four(4000);
    heap::peak();
    let before = heap::live();
    four(CANCELS);
    let (peak, after) = (heap::peak() - before, heap::live().saturating_sub(before));
    println!("the same from 4 threads: at most {peak} bytes more, {after} at the end");
    assert!(peak <= SLACK + 4 * (4 << 10), "{peak} bytes");
}

fn a_queued_request_is_small() {
    // All slots of the first eleven doublings, to the last.
    const QUEUED: usize = 64 * ((1 << 11) - 1);
    let gate = gate(1, 1, QUEUED as u32);
    let full = enter(&gate, None);
    let mut tickets = Vec::with_capacity(QUEUED);
    let before = heap::live();
    tickets.extend((0..QUEUED).map(|_| queue(&gate, None)));
    gate.settle();
    let each = (heap::live() - before) / QUEUED + size_of_val(&tickets[0]);
    println!("{each} bytes a queued request, its ticket included");
    assert!(each <= 160, "{each} bytes");
    // All but the head leave, and come again: the same slots serve.
    tickets.truncate(1);
    let before = heap::live();
    tickets.extend((1..QUEUED).map(|_| queue(&gate, None)));
    assert!(heap::live() <= before + SLACK);
    drop((tickets, full));
    idle_check(&gate);
}

fn a_rank_is_small() {
    let of = |ranks: u32, counting| {
        let before = heap::live();
        // No thread, which would let go of its part whenever it likes.
        let builder = Gate::builder()
            .dispatch(Dispatch::Manual)
            .counters(counting);
        let gate = black_box(builder.settings(settings(1, 1, 1)).build().unwrap());
        gate.report_engine(report(0..ranks, None)).unwrap();
        let bytes = heap::live() - before;
        drop(gate);
        bytes
    };
    of(1, true);
    let each = |counting| (of(1024, counting) - of(512, counting)) / 512;
    let (bare, counters) = (each(false), each(true) - each(false));
    println!("{bare} bytes a rank, and {counters} of counters");
    assert!(bare <= 256, "{bare} bytes");
    // Five counters a stripe, each stripe on a line and its neighbour; a rank more or
    // less is what an earlier gate's thread let go of meanwhile.
    assert!(counters.abs_diff(20 * 128) < 32, "{counters} bytes");
}
