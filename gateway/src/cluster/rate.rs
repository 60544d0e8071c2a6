//! How much one worker may say.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Messages of one worker that are read in a second, and at once: twice what the shortest
/// `--load-interval` makes.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(100).unwrap();

/// A worker's allowance.
#[derive(Debug)]
pub struct Rate(DefaultDirectRateLimiter);

impl Default for Rate {
    fn default() -> Self {
        Self(RateLimiter::direct(Quota::per_second(PER_SECOND)))
    }
}

impl Rate {
    /// Whether one more message is read now.
    pub fn allows(&self) -> bool {
        self.0.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_an_end() {
        let rate = Rate::default();
        let allowed = (0..10_000).filter(|_| rate.allows()).count();
        assert!((100..1000).contains(&allowed), "{allowed}");
    }
}
