//! Limits that move while requests run.

use std::time::Instant;

use crate::subject::Subject;

use super::bystander::while_it_lasts;
use super::{ASIDE, SPAN, Seen};

/// Limits go from 256 to 16 and back as fast as one thread can set them, while 8
/// requests run on either rank: there is always room for one more.
pub fn limits_move<S: Subject>() -> Option<Seen> {
    let gate = S::build(2, 256, 256, 64);
    if !gate.resize(256, 256, 64) {
        return None;
    }
    let _running: Vec<_> = (0..16).map(|i| gate.try_admit(Some(i % 2))).collect();
    Some(while_it_lasts(&gate, ASIDE, || {
        let start = Instant::now();
        while start.elapsed() < SPAN {
            gate.resize(16, 16, 16);
            gate.resize(256, 256, 64);
        }
    }))
}
