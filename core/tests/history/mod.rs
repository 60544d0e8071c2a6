//! Histories of concurrent calls: recorded with a stamp at each end, and judged
//! afterwards by what must hold whatever happened in between.

pub mod judge;
pub mod record;
pub mod refusals;

use tidegate::{Limit, Scope, Settings};

/// A moment: the calls' starts and ends in the order of one counter.
pub type Stamp = usize;

/// From, to: the end is included.
pub type Span = (Stamp, Stamp);

/// A call on a request, between two stamps.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub what: What,
    pub start: Stamp,
    pub end: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    TryAdmit(Answer),
    Request(Answer),
    /// A look at a ticket: whether it turned into a permit.
    Poll(bool),
    Cancel,
    Token,
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Admitted,
    Queued,
    Refused {
        limit: Limit,
        of_worker: bool,
        value: u64,
        scope: Scope,
    },
}

/// All calls on one request, in their order.
#[derive(Clone, Debug)]
pub struct Request {
    pub rank: Option<u32>,
    pub calls: Vec<Call>,
}

/// A change of the limits.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    pub limits: Settings,
    pub start: Stamp,
    pub end: Stamp,
}

/// What one run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub threads: usize,
    /// Reported ranks; 0 for an engine that has not reported.
    pub ranks: u32,
    pub limits: [u32; 3],
    pub resizes: bool,
    pub calls: usize,
}

/// Everything that happened in one run.
#[derive(Debug)]
pub struct History {
    pub plan: Plan,
    pub requests: Vec<Request>,
    pub resizes: Vec<Resize>,
    /// In each of these no turn was pending at some moment.
    pub settled: Vec<Span>,
    /// One more than the last stamp.
    pub end: Stamp,
}

impl Request {
    pub fn arrival(&self) -> (Call, Answer) {
        let call = self.calls[0];
        match call.what {
            What::TryAdmit(answer) | What::Request(answer) => (call, answer),
            _ => unreachable!("a request arrives first"),
        }
    }

    pub fn find(&self, what: What) -> Option<Call> {
        self.calls.iter().find(|call| call.what == what).copied()
    }

    /// The call that let it in.
    pub fn entry(&self) -> Option<Call> {
        let (arrival, answer) = self.arrival();
        match answer {
            Answer::Admitted => Some(arrival),
            Answer::Queued => self.find(What::Poll(true)),
            Answer::Refused { .. } => None,
        }
    }
}

/// A small generator: the same seed, the same calls.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }
}
