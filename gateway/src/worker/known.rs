//! What is known of an engine without asking it.

use tidegate::{LimitError, Settings};

/// What flags say about the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownEngine {
    /// Its data-parallel ranks; one rank, 0, if only `max_num_seqs` is known.
    pub ranks: Option<Vec<u32>>,
    /// Sequences in one batch of one rank.
    pub max_num_seqs: Option<u32>,
}

impl KnownEngine {
    /// Whether these limits can be kept for an engine of which this is known. What
    /// follows the engine's size is left out until that is known, and a size of 0 is
    /// none: it is not believed.
    ///
    /// # Errors
    /// A limit is out of range, for one rank or for all of them together.
    pub fn check(&self, settings: Settings) -> Result<(), LimitError> {
        let ranks = self.ranks.as_ref().map_or(1, Vec::len);
        let smallest = 1;
        let size = self.max_num_seqs.filter(|&size| size > 0);
        settings
            .resolve_for(ranks, Some(size.unwrap_or(smallest)))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_ranks_together_must_fit() {
        let known = |ranks: u32, max_num_seqs| KnownEngine {
            ranks: Some((0..ranks).collect()),
            max_num_seqs,
        };
        let queue = |limit| Settings {
            request_queue_limit: Some(limit),
            ..Settings::default()
        };
        let refused = known(1024, None).check(queue(131_071)).unwrap_err();
        assert!(
            refused.to_string().contains("request_queue_limit"),
            "{refused}"
        );
        assert!(known(1024, Some(12_287)).check(queue(1)).is_err());
        known(1024, None).check(queue(4_000)).unwrap();
        known(8, Some(256)).check(queue(131_071)).unwrap();
        // The engine's size is not known yet: it may be small enough.
        known(1024, None).check(Settings::default()).unwrap();
        known(1024, Some(0)).check(Settings::default()).unwrap();
    }
}
