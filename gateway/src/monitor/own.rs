//! The frontend's own accounting: what it has sent to a worker that has not ended.

use std::collections::BTreeMap;

/// What one request, or several together, are thought to take of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Requests.
    pub running: u64,
    /// KV blocks.
    pub blocks: u64,
    /// Prompt tokens whose first output token has not come.
    pub prefill_tokens: u64,
}

impl Share {
    /// Whether it takes less than `other` of anything.
    pub fn less_than(self, other: Self) -> bool {
        self.running < other.running
            || self.blocks < other.blocks
            || self.prefill_tokens < other.prefill_tokens
    }

    fn add(&mut self, other: Self) {
        self.running = self.running.saturating_add(other.running);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.prefill_tokens = self.prefill_tokens.saturating_add(other.prefill_tokens);
    }

    fn subtract(&mut self, other: Self) {
        self.running = self.running.saturating_sub(other.running);
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.prefill_tokens = self.prefill_tokens.saturating_sub(other.prefill_tokens);
    }

    fn part(self, parts: u64) -> Self {
        Self {
            running: self.running / parts,
            blocks: self.blocks / parts,
            prefill_tokens: self.prefill_tokens / parts,
        }
    }
}

/// What is sent to one worker, by the rank that each request names.
#[derive(Clone, Debug, Default)]
pub(super) struct Own(BTreeMap<Option<u32>, Share>);

impl Own {
    /// Replaces what a request takes; `before` is what it took until now.
    pub fn replace(&mut self, rank: Option<u32>, before: Share, now: Share) {
        let share = self.0.entry(rank).or_default();
        share.add(now);
        share.subtract(before);
        if *share == Share::default() {
            self.0.remove(&rank);
        }
    }

    /// What falls to `rank`, one of `ranks`: its own requests, and an equal part
    /// of those that name none of them, rounded down.
    pub fn of(&self, rank: u32, ranks: &[u32]) -> Share {
        let mut share = self.0.get(&Some(rank)).copied().unwrap_or_default();
        share.add(self.unranked(ranks).part(ranks.len().max(1) as u64));
        share
    }

    /// Requests on all ranks.
    pub fn running(&self) -> u64 {
        self.0.values().map(|share| share.running).sum()
    }

    fn unranked(&self, ranks: &[u32]) -> Share {
        let mut sum = Share::default();
        for (rank, share) in &self.0 {
            if rank.is_none_or(|rank| !ranks.contains(&rank)) {
                sum.add(*share);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(running: u64, blocks: u64, prefill_tokens: u64) -> Share {
        Share {
            running,
            blocks,
            prefill_tokens,
        }
    }

    #[test]
    fn unranked_requests_fall_to_all_ranks_alike() {
        let mut own = Own::default();
        let none = Share::default();
        own.replace(Some(1), none, share(1, 10, 160));
        own.replace(None, none, share(2, 5, 80));
        own.replace(Some(99), none, share(1, 1, 16));
        assert_eq!(own.of(0, &[0, 1]), share(1, 3, 48));
        assert_eq!(own.of(1, &[0, 1]), share(2, 13, 208));
        assert_eq!(own.running(), 4);
        own.replace(Some(1), share(1, 10, 160), share(1, 11, 0));
        assert_eq!(own.of(1, &[0, 1]), share(2, 14, 48));
    }

    proptest! {
        #[test]
        fn what_comes_goes(
            requests in prop::collection::vec((any::<Option<u8>>(), any::<u32>(), any::<u32>()), 0..20),
        ) {
            let mut own = Own::default();
            let shares: Vec<_> = requests
                .into_iter()
                .map(|(rank, blocks, tokens)| {
                    let taken = share(1, blocks.into(), tokens.into());
                    own.replace(rank.map(u32::from), Share::default(), taken);
                    (rank.map(u32::from), taken)
                })
                .collect();
            for (rank, taken) in shares {
                own.replace(rank, taken, Share::default());
            }
            prop_assert!(own.0.is_empty());
        }
    }
}
