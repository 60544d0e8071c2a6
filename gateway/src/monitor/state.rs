//! What is known of one worker's load: a value, with time passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::busy::{Signals, rank_is_busy, worker_is_busy};
use super::load::{Busy, Load, RankLoad};
use super::own::{Own, Share};
use super::reported::Reported;
use super::sample::{Sample, Source, Totals};
use super::threshold::{Threshold, Thresholds};

/// The most ranks that a worker may have.
pub(super) const MOST_RANKS: usize = 1024;

/// Where a worker's ranks are known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RanksFrom {
    /// Nobody has told: one, 0.
    Nobody,
    /// The worker's metrics page.
    Page,
    /// Whoever added the worker; pages change nothing.
    Declared,
}

/// What a source says of a worker at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The ranks; `None` is said of no rank in particular.
    pub ranks: BTreeMap<Option<u32>, Sample>,
    /// Whether the worker could take another request, where it tells.
    pub room: Option<bool>,
    /// Samples that were not usable.
    pub dropped: u64,
}

/// One worker's load.
#[derive(Debug)]
pub(super) struct State {
    from: RanksFrom,
    ranks: BTreeMap<u32, Reported>,
    /// What was said of no rank in particular.
    unranked: Reported,
    /// For what no source tells.
    totals: Totals,
    pub own: Own,
    heard: [Option<Instant>; Source::ALL.len()],
    free: Option<Instant>,
    /// Samples that were not usable.
    pub dropped: u64,
    /// Pages that were asked for in vain.
    pub failed_scrapes: u64,
}

impl State {
    /// Of a worker of which `totals`, and with `ranks` those, are known.
    /// More than 1024 ranks count as unknown.
    pub fn new(ranks: Option<&[u32]>, totals: Totals) -> Self {
        let declared: BTreeSet<u32> = ranks.into_iter().flatten().copied().collect();
        let usable = (1..=MOST_RANKS).contains(&declared.len());
        let (from, ranks) = if usable {
            (RanksFrom::Declared, declared)
        } else {
            (RanksFrom::Nobody, BTreeSet::from([0]))
        };
        Self {
            from,
            ranks: ranks
                .into_iter()
                .map(|rank| (rank, Reported::default()))
                .collect(),
            unranked: Reported::default(),
            totals,
            own: Own::default(),
            heard: [None; Source::ALL.len()],
            free: None,
            dropped: 0,
            failed_scrapes: 0,
        }
    }

    /// Takes in what a source says that is true of the moment `at`. Ranks that
    /// the worker does not have are dropped and counted.
    pub fn take(&mut self, source: Source, reading: &Reading, at: Instant) {
        self.dropped = self.dropped.saturating_add(reading.dropped);
        if source == Source::Scrape {
            self.learn_ranks(reading);
        }
        let mut free = false;
        let mut heard = false;
        for (rank, sample) in &reading.ranks {
            let reported = match rank {
                Some(rank) => self.ranks.get_mut(rank),
                None => Some(&mut self.unranked),
            };
            let Some(reported) = reported else {
                self.dropped = self.dropped.saturating_add(1);
                continue;
            };
            reported.take(source, sample, at);
            heard = true;
            free |= says_free(sample, reported.totals().or(self.totals));
        }
        if heard {
            newest(&mut self.heard[source as usize], at);
            if reading.room.unwrap_or(free) {
                newest(&mut self.free, at);
            }
        }
    }

    /// A page names the ranks that there are. One with faults in it may have lost
    /// some, so it only adds.
    fn learn_ranks(&mut self, reading: &Reading) {
        let named: BTreeSet<u32> = reading.ranks.keys().copied().flatten().collect();
        if self.from == RanksFrom::Declared || named.is_empty() {
            return;
        }
        if self.from == RanksFrom::Nobody || reading.dropped == 0 {
            self.ranks.retain(|rank, _| named.contains(rank));
        }
        for rank in named {
            if self.ranks.len() < MOST_RANKS {
                self.ranks.entry(rank).or_default();
            }
        }
        self.from = RanksFrom::Page;
    }

    /// The worker itself says which ranks it has. More than 1024, or none, say nothing.
    pub fn declare(&mut self, ranks: &[u32]) {
        let declared: BTreeSet<u32> = ranks.iter().copied().collect();
        if !(1..=MOST_RANKS).contains(&declared.len()) {
            return;
        }
        self.ranks.retain(|rank, _| declared.contains(rank));
        for rank in declared {
            self.ranks.entry(rank).or_default();
        }
        self.from = RanksFrom::Declared;
    }

    /// Which ranks are busy, and whether the worker is.
    pub fn busy(&self, thresholds: &Thresholds, now: Instant, ttl: Duration) -> Busy {
        if thresholds.is_empty() {
            return Busy::default();
        }
        let ids = self.ids();
        let busy = |rank: &u32| {
            let totals = self.totals_of(*rank);
            let own = signals(self.own.of(*rank, &ids));
            let told = self.told(*rank, now, ttl).map(Signals::from);
            told.chain([own])
                .any(|signals| rank_is_busy(thresholds, signals, totals))
        };
        let ranks: Vec<u32> = ids.iter().copied().filter(|rank| busy(rank)).collect();
        Busy {
            worker: worker_is_busy(ids.iter().map(|rank| ranks.contains(rank))),
            ranks,
        }
    }

    /// The load, with the largest count that any source, or the own accounting, has.
    pub fn load(&self, now: Instant, ttl: Duration) -> Load {
        let ids = self.ids();
        let ranks = ids.iter().map(|rank| self.rank_load(*rank, &ids, now, ttl));
        let ranks: Vec<RankLoad> = ranks.collect();
        let told = ranks.iter().map(|rank| rank.running);
        let told = told.fold(0, u64::saturating_add);
        let unranked = if ids.len() == 1 {
            0
        } else {
            in_progress(self.unranked.fresh(now, ttl)).unwrap_or(0)
        };
        Load {
            running: told.saturating_add(unranked).max(self.own.running()),
            ranks,
        }
    }

    fn rank_load(&self, rank: u32, ids: &[u32], now: Instant, ttl: Duration) -> RankLoad {
        let own = self.own.of(rank, ids);
        let told: Vec<Sample> = self.told(rank, now, ttl).collect();
        let most = |of: fn(&Sample) -> Option<u64>| told.iter().filter_map(of).max();
        let blocks = most(|said| said.active_decode_blocks).max(most(|said| said.kv_used_blocks));
        let tokens = most(|said| said.active_prefill_tokens);
        let totals = self.totals_of(rank);
        RankLoad {
            rank,
            active_decode_blocks: blocks.unwrap_or(0).max(own.blocks),
            active_prefill_tokens: tokens.unwrap_or(0).max(own.prefill_tokens),
            running: in_progress(told.into_iter()).unwrap_or(0).max(own.running),
            kv_total_blocks: totals.kv_total_blocks,
            max_num_batched_tokens: totals.max_num_batched_tokens,
        }
    }

    /// What sources say of a rank; with one rank, what is said of none as well.
    fn told(&self, rank: u32, now: Instant, ttl: Duration) -> impl Iterator<Item = Sample> {
        let own = self.ranks.get(&rank).map(|said| said.fresh(now, ttl));
        let unranked = (self.ranks.len() == 1).then(|| self.unranked.fresh(now, ttl));
        own.into_iter()
            .flatten()
            .chain(unranked.into_iter().flatten())
    }

    /// How large a rank is.
    pub fn totals_of(&self, rank: u32) -> Totals {
        let said = self.ranks.get(&rank).map(Reported::totals);
        let said = said.unwrap_or_default();
        said.or(self.unranked.totals()).or(self.totals)
    }

    /// Whether a threshold, if it were set, would ever be judged by. Prefill tokens
    /// are always known from the own accounting; the others need a size as well.
    pub fn has_source(&self, threshold: Threshold) -> bool {
        let known = |of: fn(Totals) -> Option<u64>| {
            self.ranks
                .keys()
                .any(|rank| of(self.totals_of(*rank)).is_some())
        };
        match threshold {
            Threshold::DecodeBlocks => known(|totals| totals.kv_total_blocks),
            Threshold::PrefillTokens => true,
            Threshold::PrefillTokensFrac => known(|totals| totals.max_num_batched_tokens),
        }
    }

    /// When a source was last heard.
    pub fn heard(&self, source: Source) -> Option<Instant> {
        self.heard[source as usize]
    }

    /// When a sample last said that the worker can take another request.
    pub fn free(&self) -> Option<Instant> {
        self.free
    }

    fn ids(&self) -> Vec<u32> {
        self.ranks.keys().copied().collect()
    }
}

/// Whether a sample alone says that there is room: nobody waits; or, where that
/// is not told, blocks are left.
fn says_free(sample: &Sample, totals: Totals) -> bool {
    let blocks = sample.kv_used_blocks.max(sample.active_decode_blocks);
    match (sample.waiting, blocks, totals.kv_total_blocks) {
        (Some(waiting), _, _) => waiting == 0,
        (None, Some(used), Some(total)) => used < total,
        _ => false,
    }
}

/// Requests that have arrived and not ended, as the source says that has most.
/// What is told of a rank and of none adds up within a source.
fn in_progress(told: impl Iterator<Item = Sample>) -> Option<u64> {
    let mut by_source = [None::<u64>; Source::ALL.len()];
    for (at, sample) in told.enumerate() {
        let known = [sample.running, sample.waiting].into_iter().flatten();
        let sum = known.fold(None, |sum: Option<u64>, more| {
            Some(sum.unwrap_or(0).saturating_add(more))
        });
        let source = &mut by_source[at % Source::ALL.len()];
        if let Some(sum) = sum {
            *source = Some(source.unwrap_or(0).saturating_add(sum));
        }
    }
    by_source.into_iter().flatten().max()
}

fn signals(own: Share) -> Signals {
    Signals {
        active_decode_blocks: Some(own.blocks),
        kv_used_blocks: None,
        active_prefill_tokens: Some(own.prefill_tokens),
    }
}

fn newest(moment: &mut Option<Instant>, at: Instant) {
    *moment = (*moment).max(Some(at));
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
