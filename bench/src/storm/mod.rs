//! Storms: something violent happens, and what matters is what others see of it.
//!
//! In each, a *bystander* makes one request after the other on a rank that has
//! room, and notes how long each call of it took, clock included.

mod burst;
mod bystander;
mod leaving;
mod limits;
mod preempted;

pub use burst::burst;
pub use bystander::Seen;
pub use leaving::all_leave;
pub use limits::limits_move;
pub use preempted::preempted;

use std::time::Duration;

use crate::subject::Subject;

/// How long the storms last that have no end of their own.
pub const SPAN: Duration = Duration::from_millis(100);

/// The rank that the bystander enters.
const ASIDE: Option<u32> = Some(1);

/// No storm: what the clock, the caches and the machine make of the bystander.
pub fn calm<S: Subject>() -> Option<Seen> {
    let gate = S::build(2, 8, 8, 8);
    Some(bystander::while_it_lasts(&gate, ASIDE, || {
        std::thread::sleep(SPAN);
    }))
}
