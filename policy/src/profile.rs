//! The profile of a request: what it is about to ask of the engine.
//!
//! A model's expected latency is learned from what its requests took inside the
//! engine. Two things are learned, for the first token and for the whole answer:
//!
//! * how latency grows with the input, a [`Line`] in input units. For the first
//!   token the input is the request's own plus that of the requests in the
//!   engine that have no first token yet, because prefill works through them in
//!   turn; for the whole answer it is the request's own.
//! * how latencies are spread, eight [`Buckets`] from p50 to p99.9, rebuilt
//!   every 5 minutes from the last one to two such periods, and once as soon as
//!   there are [`FIRST_TABLE`] latencies.
//!
//! A deadline is kept by the slow ones, not by the average. So two mean distances
//! from the line are added to it, which says the bucket, and the bucket's *upper*
//! edge is what is expected. Outside the table, which starts at the
//! median, the line alone knows; below it, one bucket's width is added. (With the
//! first bucket's edge for everything faster than the median, one bad minute would
//! make every request look late until the next table, and none could prove
//! otherwise.) Nothing learned yet expects 0: what is not known is no reason to
//! refuse.

use std::time::Duration;

use crate::buckets::Buckets;
use crate::class::ClassId;
use crate::ema::Ema;
use crate::line::Line;
use crate::rolling::Rolling;

/// How often the table of buckets is rebuilt.
pub const REBUILD: Duration = Duration::from_secs(300);

/// With this many latencies the first table is built, without waiting.
pub const FIRST_TABLE: u64 = 100;

/// How many mean distances from the line a latency may be and still be expected:
/// of a normal distribution, 95 % are below.
const SPREADS: f64 = 2.0;

/// What is left of all that was learned when an answer proves it wrong.
const DISPROVED: f64 = 0.1;

/// What a request is about to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model that it names.
    pub model: String,
    /// Its class.
    pub class: ClassId,
    /// Size of its input, all sequences together: tokens, or elements of a tensor.
    pub input: u64,
    /// Memory that its longest sequence will hold, in tokens. An engine takes the
    /// sequences of a batch one by one as it has room, so that no more has to fit.
    pub need: u64,
    /// What it costs in fair sharing: the input and output of all its sequences.
    pub cost: u64,
}

/// The size of a request's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputSize {
    /// Tokens of all sequences, or elements of a tensor: what there is to work through.
    pub all: u64,
    /// Tokens of the longest sequence, which is what has to fit in the engine's cache; 0
    /// for a tensor, of which nothing stays there.
    pub longest: u64,
    /// How many sequences there are, at least 1.
    pub sequences: u64,
}

impl InputSize {
    /// One sequence of so many tokens.
    #[must_use]
    pub fn one(tokens: u64) -> Self {
        InputSize {
            all: tokens,
            longest: tokens,
            sequences: 1,
        }
    }
}

/// How long a request is expected to take inside the engine, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Until its first token.
    pub first_token_ms: f64,
    /// Until its end.
    pub end_to_end_ms: f64,
}

/// What one model's requests take.
#[derive(Clone, Debug)]
pub struct ModelLatency {
    first_token: Latency,
    end_to_end: Latency,
    output: Ema,
}

impl ModelLatency {
    /// Nothing learned yet. `rebuild` is [`REBUILD`] unless set otherwise.
    #[must_use]
    pub fn new(rebuild: Duration, now: Duration) -> Self {
        ModelLatency {
            first_token: Latency::new(rebuild, now),
            end_to_end: Latency::new(rebuild, now),
            output: Ema::new(0.02),
        }
    }

    /// A first token came `ms` after the request entered the engine, with this
    /// much input before and in it.
    pub fn first_token(&mut self, now: Duration, input_until: u64, ms: f64) {
        self.first_token.observe(now, input_until, ms);
    }

    /// The first token that came `ms` after the request entered, with this much input
    /// before and in it, proves the estimate wrong: what was learned before weighs a
    /// tenth. Tell of it as of any other, afterwards.
    pub fn first_token_disproves(&mut self, input_until: u64, ms: f64) {
        self.first_token.disproved(input_until, ms);
    }

    /// The same of a whole answer to a request of this input.
    pub fn end_disproves(&mut self, input: u64, ms: f64) {
        self.end_to_end.disproved(input, ms);
    }

    /// A request of this input ended `ms` after it entered the engine, having
    /// generated `output` tokens, if that is known.
    pub fn ended(&mut self, now: Duration, input: u64, output: Option<u64>, ms: f64) {
        self.end_to_end.observe(now, input, ms);
        if let Some(output) = output {
            self.output.observe(output as f64);
        }
    }

    /// What a request is expected to take, `input` long behind `before` of
    /// others' input that the engine has yet to work through.
    #[must_use]
    pub fn expected(&self, before: u64, input: u64) -> Expected {
        Expected {
            first_token_ms: self.first_token.expected(before.saturating_add(input)),
            end_to_end_ms: self.end_to_end.expected(input),
        }
    }

    /// Tokens that an answer has on average; 0 before the first ended.
    #[must_use]
    pub fn output_tokens(&self) -> u64 {
        self.output.get().unwrap_or(0.0).round() as u64
    }
}

#[derive(Clone, Debug)]
struct Latency {
    line: Line,
    /// Mean distance of the latencies from the line, in milliseconds.
    spread: Ema,
    recent: Rolling,
    table: Option<Buckets>,
}

impl Latency {
    fn new(rebuild: Duration, now: Duration) -> Self {
        Latency {
            line: Line::new(0.99),
            spread: Ema::new(0.01),
            recent: Rolling::new(rebuild, now),
            table: None,
        }
    }

    fn observe(&mut self, now: Duration, input: u64, ms: f64) {
        if let Some(predicted) = self.line.predict(input as f64) {
            self.spread.observe((ms - predicted).abs());
        }
        self.line.observe(input as f64, ms);
        self.recent.record(ms);
        let first = self.table.is_none() && self.recent.len() >= FIRST_TABLE;
        // Before the turn: the period that ends is what the table is built from.
        let rebuilt = self.recent.quantiles([0.5, 0.999]);
        if (self.recent.turn(now) || first)
            && let Some([p50, p999]) = rebuilt
        {
            self.table = Buckets::between(p50, p999).or(self.table);
        }
    }

    fn disproved(&mut self, input: u64, ms: f64) {
        if let Some(predicted) = self.line.predict(input as f64) {
            self.spread.forget(DISPROVED, (ms - predicted).abs());
        }
        self.line.forget(DISPROVED);
    }

    fn expected(&self, input: u64) -> f64 {
        let mean = self.line.predict(input as f64).unwrap_or(0.0);
        let raw = mean + SPREADS * self.spread.get().unwrap_or(0.0);
        match &self.table {
            Some(table) => {
                let upper = table.upper(table.classify(raw)).max(raw);
                upper.min(raw * table.width())
            }
            None => raw,
        }
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
