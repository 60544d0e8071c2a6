//! The memory that requests compete for.
//!
//! What runs out in a serving engine is the KV cache: a pool of a size that is
//! fixed when the engine starts. Device memory says little about it, because
//! most engines take nearly all of it at the start (vLLM 90 %) and would seem
//! full for ever. So the pool is used where it is known, and device memory only
//! for an engine that is declared not to take it in advance ([`choose`]).

/// What memory is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Tokens of the engine's KV cache.
    KvTokens,
    /// Bytes of the device.
    DeviceBytes,
}

/// Memory in use, and all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// In use.
    pub used: u64,
    /// In all; at least 1 for a value from [`Memory::new`].
    pub total: u64,
    /// The unit of both.
    pub unit: Unit,
}

impl Memory {
    /// `None` where the total is 0: such a sample says nothing. `used` above
    /// `total` counts as all of it.
    #[must_use]
    pub fn new(used: u64, total: u64, unit: Unit) -> Option<Self> {
        let used = used.min(total);
        (total > 0).then_some(Memory { used, total, unit })
    }

    /// The memory rule: `used + need ≤ total`.
    #[must_use]
    pub fn fits(&self, need: u64) -> bool {
        self.used.saturating_add(need) <= self.total
    }

    /// Whether the need fits in an empty engine; if not, waiting is in vain.
    #[must_use]
    pub fn can_ever_fit(&self, need: u64) -> bool {
        need <= self.total
    }

    /// The share in use, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        (self.used as f64 / self.total.max(1) as f64).min(1.0)
    }

    /// Raises what is in use to what is known to be promised: a sample is as old
    /// as the sampler's interval, and what was let in since is not in it.
    #[must_use]
    pub fn at_least(self, promised: u64) -> Self {
        Memory {
            used: self.used.max(promised).min(self.total),
            ..self
        }
    }
}

/// The memory to judge by: the KV pool where it is known; the device's only
/// where the engine does not take it in advance.
#[must_use]
pub fn choose(pool: Option<Memory>, device: Option<Memory>, preallocates: bool) -> Option<Memory> {
    pool.or(device.filter(|_| !preallocates))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kv(used: u64, total: u64) -> Memory {
        Memory::new(used, total, Unit::KvTokens).unwrap()
    }

    #[test]
    fn the_last_unit_may_be_used() {
        assert!(kv(60, 100).fits(40));
        assert!(!kv(60, 100).fits(41));
        assert!(kv(100, 100).fits(0));
        assert!(kv(60, 100).can_ever_fit(100) && !kv(60, 100).can_ever_fit(101));
    }

    #[test]
    fn a_device_that_the_engine_filled_at_its_start_does_not_count() {
        let device = Memory::new(90, 100, Unit::DeviceBytes);
        let pool = Some(kv(1, 100));
        assert_eq!(choose(None, device, true), None);
        assert_eq!(choose(None, device, false), device);
        assert_eq!(choose(pool, device, false), pool);
        assert_eq!(choose(pool, device, true), pool);
    }

    #[test]
    fn what_was_let_in_since_the_sample_counts() {
        assert_eq!(kv(10, 100).at_least(30).used, 30);
        assert_eq!(kv(50, 100).at_least(30).used, 50);
        assert_eq!(kv(50, 100).at_least(u64::MAX).used, 100);
    }

    #[test]
    fn a_total_of_nothing_is_no_sample() {
        assert_eq!(Memory::new(0, 0, Unit::KvTokens), None);
        assert_eq!(kv(7, 5).used, 5);
    }

    proptest! {
        #[test]
        fn less_need_fits_wherever_more_does(used: u64, total in 1_u64.., a: u64, b: u64) {
            let memory = kv(used, total);
            prop_assert!(!memory.fits(a.max(b)) || memory.fits(a.min(b)));
            prop_assert!(!memory.fits(a) || memory.can_ever_fit(a));
            prop_assert!((0.0..=1.0).contains(&memory.share()));
        }

        #[test]
        fn more_in_use_never_makes_room(a: u64, b: u64, total in 1_u64.., need: u64) {
            prop_assert!(!kv(a.max(b), total).fits(need) || kv(a.min(b), total).fits(need));
        }
    }
}
