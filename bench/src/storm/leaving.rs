//! All of a long queue leave at once.

use crate::subject::Subject;

use super::bystander::while_it_lasts;
use super::{ASIDE, Seen};

/// How many.
const COUNT: usize = 40_000;

/// 40,000 requests queued for rank 0 are cancelled by one thread, in random order.
pub fn all_leave<S: Subject>() -> Option<Seen> {
    if !S::RULES.ranks || !S::RULES.queue {
        // The bystander would be queued behind them.
        return None;
    }
    let gate = S::build(2, 1, 1, COUNT as u32);
    let _holder = gate.try_admit(Some(0)).expect("room");
    let mut tickets: Vec<_> = (0..COUNT).map(|_| gate.request(Some(0)).queued()).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut tickets);
    Some(while_it_lasts(&gate, ASIDE, || drop(tickets)))
}
