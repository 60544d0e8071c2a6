//! The KV cache of one rank, counted in blocks.

/// A fixed number of blocks, of which sequences hold some.
#[derive(Clone, Debug)]
pub struct KvPool {
    total: u32,
    free: u32,
    block_size: u32,
}

impl KvPool {
    /// A pool of `total` free blocks, each holding the cache of `block_size`
    /// tokens (0 counts as 1).
    pub fn new(total: u32, block_size: u32) -> Self {
        Self {
            total,
            free: total,
            block_size: block_size.max(1),
        }
    }

    /// Blocks in all.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Blocks that nobody holds.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Blocks held by sequences.
    pub fn used(&self) -> u32 {
        self.total - self.free
    }

    /// Blocks that `tokens` tokens take; the last may be partly filled.
    pub fn blocks_for(&self, tokens: u64) -> u64 {
        tokens.div_ceil(u64::from(self.block_size))
    }

    /// Takes what is missing for a sequence that holds `held` blocks to cache
    /// `tokens` tokens: all of it, or nothing and `false`.
    #[must_use]
    pub fn grow(&mut self, held: &mut u32, tokens: u64) -> bool {
        let missing = self.blocks_for(tokens).saturating_sub(u64::from(*held));
        match u32::try_from(missing) {
            Ok(missing) if missing <= self.free => {
                self.free -= missing;
                *held += missing;
                true
            }
            _ => false,
        }
    }

    /// Gives back all that a sequence holds.
    pub fn release(&mut self, held: &mut u32) {
        self.free += std::mem::take(held);
        debug_assert!(self.free <= self.total, "more given back than taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_by_whole_blocks_or_not_at_all() {
        let mut pool = KvPool::new(3, 16);
        let mut held = 0;
        assert!(pool.grow(&mut held, 17));
        assert_eq!((held, pool.used()), (2, 2));
        assert!(pool.grow(&mut held, 32));
        assert_eq!(held, 2);
        assert!(!pool.grow(&mut held, 49));
        assert_eq!((held, pool.free()), (2, 1));
        assert!(!pool.grow(&mut held, u64::MAX));
        pool.release(&mut held);
        assert_eq!((held, pool.free()), (0, 3));
    }
}
