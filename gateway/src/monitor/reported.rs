//! What sources have said of one rank: the newest of each counts, until it is too old.

use std::time::Duration;

use tokio::time::Instant;

use super::busy::Signals;
use super::sample::{Sample, Source, Totals};

/// What every source has said of one rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    by_source: [Told; Source::ALL.len()],
    totals: Totals,
}

/// What one source has said, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    active_decode_blocks: Stamped,
    kv_used_blocks: Stamped,
    active_prefill_tokens: Stamped,
    running: Stamped,
    waiting: Stamped,
}

/// A value and the moment that it is of.
#[derive(Clone, Copy, Debug, Default)]
struct Stamped(Option<(u64, Instant)>);

impl Stamped {
    /// Keeps `value`, if there is one and none is newer.
    fn keep(&mut self, value: Option<u64>, at: Instant) {
        let Some(value) = value else { return };
        if self.0.is_none_or(|(_, known)| known <= at) {
            self.0 = Some((value, at));
        }
    }

    fn fresh(self, now: Instant, ttl: Duration) -> Option<u64> {
        let (value, at) = self.0?;
        (now.saturating_duration_since(at) <= ttl).then_some(value)
    }
}

impl Reported {
    /// Takes in a sample that was taken `at`.
    pub fn take(&mut self, source: Source, sample: &Sample, at: Instant) {
        let told = &mut self.by_source[source as usize];
        told.active_decode_blocks
            .keep(sample.active_decode_blocks, at);
        told.kv_used_blocks.keep(sample.kv_used_blocks, at);
        told.active_prefill_tokens
            .keep(sample.active_prefill_tokens, at);
        told.running.keep(sample.running, at);
        told.waiting.keep(sample.waiting, at);
        // A size does not age: an engine that is silent has not shrunk.
        self.totals = sample.totals.or(self.totals);
    }

    /// How large the rank is, as last said.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What each source says that is not older than `ttl`.
    pub fn fresh(&self, now: Instant, ttl: Duration) -> impl Iterator<Item = Sample> {
        self.by_source.into_iter().map(move |told| Sample {
            active_decode_blocks: told.active_decode_blocks.fresh(now, ttl),
            kv_used_blocks: told.kv_used_blocks.fresh(now, ttl),
            active_prefill_tokens: told.active_prefill_tokens.fresh(now, ttl),
            running: told.running.fresh(now, ttl),
            waiting: told.waiting.fresh(now, ttl),
            totals: Totals::default(),
        })
    }
}

impl From<Sample> for Signals {
    fn from(sample: Sample) -> Self {
        Self {
            active_decode_blocks: sample.active_decode_blocks,
            kv_used_blocks: sample.kv_used_blocks,
            active_prefill_tokens: sample.active_prefill_tokens,
        }
    }
}
