//! What a worker's metrics page says of its load.
//!
//! Values that are negative, no numbers or beyond 2⁵³, shares over 1, second values of
//! one series and ranks that are no numbers are dropped and counted; so is a whole page
//! that names more than 1024 ranks. Whatever the page holds, the rest of it is read.

use std::collections::BTreeMap;

use tidegate_policy::page::{Sample as Line, samples};

use super::names::{Known, SAYINGS, Says, known};
use super::sample::{Sample, Totals};
use super::state::{MOST_RANKS, Reading};

/// The rank in Tidegate's metrics of requests that name none.
const UNSPECIFIED: &str = "unspecified";

/// The largest count that a float holds exactly.
const MOST: f64 = 9_007_199_254_740_992.0;

/// A share this little above 1 is a rounding of 1.
const MOST_SHARE: f64 = 1.01;

/// Reads a page. Tokens are turned into blocks of `block_size` tokens where the page
/// does not tell another size.
#[must_use]
pub fn read(page: &str, block_size: u32) -> Reading {
    let mut found = Found::default();
    for line in samples(page) {
        if let Some(known) = known(line.name) {
            found.take(known, line);
        }
        if found.ranks.len() > MOST_RANKS + 1 {
            return Reading {
                dropped: found.dropped.saturating_add(1),
                ..Reading::default()
            };
        }
    }
    found.reading(block_size.max(1))
}

/// What a page says of one rank: a value, and the place of the name that said so.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    said: [Option<(usize, f64)>; SAYINGS],
    blocks: Option<u64>,
    block_size: Option<u32>,
}

#[derive(Debug, Default)]
struct Found {
    ranks: BTreeMap<Option<u32>, Rank>,
    dropped: u64,
}

impl Found {
    fn take(&mut self, known: Known, line: Line<'_>) {
        // Ranks that work on the same requests: the first speaks for all.
        let other = |label| line.number(label).is_some_and(|rank| rank > 0);
        if other("tp_rank") || other("pp_rank") {
            return;
        }
        if self.keep(known, line).is_none() {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Keeps what a line says; `None` if it is not usable.
    fn keep(&mut self, known: Known, line: Line<'_>) -> Option<()> {
        let rank = rank(known, line)?;
        let value = usable(known.says, line.value)?;
        let of_rank = self.ranks.entry(rank).or_default();
        if known.says == Says::CacheConfig {
            // One that is not set up yet says `None`.
            of_rank.blocks = of_rank.blocks.or(line.number("num_gpu_blocks"));
            let size = line
                .number("block_size")
                .and_then(|size| size.try_into().ok());
            of_rank.block_size = of_rank.block_size.or(size);
            return Some(());
        }
        let said = &mut of_rank.said[known.says as usize];
        match *said {
            Some((place, _)) if place == known.place => return None,
            Some((place, _)) if place < known.place => {}
            _ => *said = Some((known.place, value)),
        }
        Some(())
    }

    fn reading(self, block_size: u32) -> Reading {
        let unranked = self.ranks.get(&None).copied().unwrap_or_default();
        let ranks = self.ranks.iter();
        let ranks = ranks.map(|(rank, said)| (*rank, said.sample(&unranked, block_size)));
        Reading {
            room: self.room(),
            dropped: self.dropped,
            ranks: ranks.collect(),
        }
    }

    /// Whether a gate, by its own counts, would admit or queue another request.
    fn room(&self) -> Option<bool> {
        let ranks = self.ranks.keys().flatten().count().max(1) as f64;
        let limit = |says| {
            let limit = self.ranks.values().find_map(|rank| rank.value(says));
            limit.map(|limit| limit * ranks)
        };
        let sum = |says| -> f64 {
            let values = self.ranks.values().filter_map(|rank| rank.value(says));
            values.sum()
        };
        let enters = sum(Says::Running) < limit(Says::RequestLimit)?
            && sum(Says::GateWaiting) < limit(Says::WaitingLimit)?;
        Some(enters || sum(Says::Waiting) < limit(Says::QueueLimit)?)
    }
}

impl Rank {
    fn value(&self, says: Says) -> Option<f64> {
        self.said[says as usize].map(|(_, value)| value)
    }

    fn count(&self, says: Says) -> Option<u64> {
        self.value(says).map(|value| value.round() as u64)
    }

    /// What it amounts to. What is said of no rank in particular, such as the size of
    /// the cache, holds for each.
    fn sample(&self, unranked: &Self, default_size: u32) -> Sample {
        let told_size = self.block_size.or(unranked.block_size);
        let size = told_size.filter(|size| *size > 0).unwrap_or(default_size);
        let blocks = |tokens: u64| tokens.div_ceil(u64::from(size));
        let total = self.total(blocks).or_else(|| unranked.total(blocks));
        let share = self.value(Says::UsedShare).or(self.value(Says::ExactShare));
        let share = || Some((share? * total? as f64).round() as u64);
        let used = self.count(Says::UsedBlocks);
        let used = used.or_else(|| self.count(Says::UsedTokens).map(blocks));
        Sample {
            active_decode_blocks: None,
            kv_used_blocks: used.or_else(share),
            active_prefill_tokens: None,
            running: self.count(Says::Running),
            waiting: self.count(Says::Waiting),
            totals: Totals {
                kv_total_blocks: total,
                max_num_batched_tokens: None,
                block_size: told_size,
            },
        }
    }

    /// How many blocks there are, from whatever tells.
    fn total(&self, blocks: impl Fn(u64) -> u64) -> Option<u64> {
        let tokens = self.count(Says::TotalTokens);
        let worked_out = || {
            let ratio = self.value(Says::ExactShare).filter(|share| *share > 0.0)?;
            let tokens = (self.value(Says::UsedTokens)? / ratio).round();
            (tokens <= MOST).then_some(tokens as u64)
        };
        let told = self.count(Says::TotalBlocks).or(self.blocks);
        told.or_else(|| tokens.or_else(worked_out).map(blocks))
    }
}

/// The rank that a line is about; `None` if it names something that is none.
fn rank(known: Known, line: Line<'_>) -> Option<Option<u32>> {
    let Some(label) = line.label(known.rank_label) else {
        // A label that cannot be read could be this one.
        return line.labels().map(|_| None);
    };
    match label.trim() {
        "" | UNSPECIFIED => Some(None),
        label => label.parse().ok().map(Some),
    }
}

fn usable(says: Says, value: f64) -> Option<f64> {
    if matches!(says, Says::UsedShare | Says::ExactShare) {
        return (0.0..=MOST_SHARE)
            .contains(&value)
            .then_some(value.min(1.0));
    }
    (0.0..=MOST).contains(&value).then_some(value)
}
