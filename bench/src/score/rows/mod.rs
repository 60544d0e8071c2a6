//! The rows, in the order of the table.

mod deciding;
mod direct;
mod handover;
mod keeping;
mod memory;
mod queue;
mod refusal;

use crate::subject::Subject;
use crate::timing::{alone, pair};
use crate::work;

use super::{Contender, Row};

/// Makes a row, with the gates that it needs.
pub type Make = fn() -> Row;

/// All of them. A row's gates live while it is measured and no longer.
pub fn all() -> Vec<Make> {
    [
        direct::ROWS,
        refusal::ROWS,
        handover::ROWS,
        queue::ROWS,
        keeping::ROWS,
        deciding::ROWS,
        memory::ROWS,
    ]
    .concat()
}

/// Lifecycles of one thread on one rank of eight.
fn on_one_thread<S: Subject>() -> Contender {
    let gate = S::build(8, 256, 256, 512);
    Contender::new(S::NAME, move |plan| {
        alone(plan.span, |n| work::lifecycles(&gate, Some(3), n))
    })
}

/// Lifecycles of two threads, each on its rank.
fn on_two_threads<S: Subject>(ranks: u32, of_threads: [Option<u32>; 2]) -> Contender {
    let gate = S::build(ranks, 256, 256, 512);
    Contender::new(S::NAME, move |plan| {
        pair(plan.span, |thread, n| {
            work::lifecycles(&gate, of_threads[thread], n)
        })
    })
}

/// A gate that outlives everything, for what tasks and tickets borrow.
fn leaked<S: Subject>(ranks: u32, r: u32, w: u32, q: u32) -> &'static S {
    Box::leak(Box::new(S::build(ranks, r, w, q)))
}
