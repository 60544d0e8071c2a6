//! A warning that may be due a thousand times a second, said now and then.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the same is said.
const EVERY: Duration = Duration::from_secs(5);

/// Lets the first through, then one each 5 s, and counts those left out.
#[derive(Debug, Default)]
pub struct Sparing {
    /// When it was said last, and how many have been left out since.
    last: Mutex<Option<(Instant, u64)>>,
}

impl Sparing {
    /// Whether to say it at `now`: then gives how many were left out before.
    pub fn due(&self, now: Instant) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((said, left_out)) if now.saturating_duration_since(*said) < EVERY => {
                *left_out += 1;
                None
            }
            _ => Some(last.replace((now, 0)).map_or(0, |(_, left_out)| left_out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_and_then_one_each_five_seconds() {
        let (sparing, start) = (Sparing::default(), Instant::now());
        let at = |millis| sparing.due(start + Duration::from_millis(millis));
        assert_eq!(at(0), Some(0));
        assert_eq!([at(1), at(2), at(4_999)], [None; 3]);
        assert_eq!(at(5_000), Some(3));
        // A clock that goes back is no reason to speak.
        assert_eq!(at(0), None);
        assert_eq!(at(20_000), Some(1));
    }
}
