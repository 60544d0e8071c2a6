//! Who is next: strict priorities, and weighted fair sharing inside one.
//!
//! Of the classes that hold requests, those of the highest priority go first.
//! Among these the shares follow the weights, by start-time fair queueing
//! (Goyal, Vin, Cheng, 1996): each class has a start tag `S`, each priority a
//! virtual time `V`.
//!
//! ```text
//! a class begins to wait      S = max(S, V - credit)
//! next                        the least S; of equal ones the first class
//! one of it is admitted       V = S,  S = S + cost / weight
//! ```
//!
//! So two classes that wait all the time get `cost` in proportion to their
//! weights, never further apart than one request of each. The cost of a request is 1, or
//! its input and output in tokens ([`By`]).
//!
//! # Credit
//! A class that comes back has saved up its share of what its priority was admitted
//! over the last one to two periods (5 s each):
//!
//! ```text
//! credit = cost admitted / sum of all weights
//! ```
//!
//! Its burst goes before those who have had more than their share meanwhile, and all
//! such bursts together are no more than what is admitted in two periods. It is the idle
//! credit of mClock (Gulati, Merchant, Varman, 2010), in virtual time.
//!
//! # The floor
//! Strict priorities starve. So of all admissions that happen while a class
//! waits it gets at least the share `floor`: with 1 %, after 99 of others it is
//! its turn, whatever its priority.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::class::{Class, ClassId};
use crate::turns::Turns;

/// The floor unless set otherwise.
pub const FLOOR: f64 = 0.01;

/// The period of credit unless set otherwise.
pub const CREDIT: Duration = Duration::from_secs(5);

/// What is shared in proportion to the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Tokens: a request costs those of its input and output, at least 1.
    #[default]
    Tokens,
    /// Requests: each costs 1.
    Requests,
}

impl By {
    /// What a request of this many tokens costs.
    #[must_use]
    pub fn cost(self, tokens: u64) -> f64 {
        match self {
            By::Tokens => tokens.max(1) as f64,
            By::Requests => 1.0,
        }
    }
}

/// Keeps the classes' tags.
#[derive(Clone, Debug)]
pub struct Fairness {
    floor: f64,
    turns: Turns,
    flows: Vec<Flow>,
    virtual_time: BTreeMap<u8, VirtualTime>,
}

/// The virtual time of one priority.
#[derive(Clone, Copy, Debug, Default)]
struct VirtualTime {
    now: f64,
    /// Cost admitted in this period, and in the one before.
    admitted: [f64; 2],
    /// The sum of its classes' weights.
    weights: f64,
}

impl VirtualTime {
    fn turn(&mut self) {
        self.admitted = [0.0, self.admitted[0]];
    }

    fn credit(&self) -> f64 {
        self.admitted.iter().sum::<f64>() / self.weights.max(f64::MIN_POSITIVE)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    start: f64,
    waits: bool,
    /// Admissions of any class since it began to wait, and those of its own.
    seen: u64,
    got: u64,
}

impl Fairness {
    /// Nobody waits. `floor` is from 0 (none) to 1; `credit` is the period of credit, and
    /// 0 gives none.
    #[must_use]
    pub fn new(classes: &[Class], floor: f64, credit: Duration) -> Self {
        let mut virtual_time: BTreeMap<u8, VirtualTime> = BTreeMap::new();
        for class in classes {
            virtual_time.entry(class.priority).or_default().weights += class.weight;
        }
        Fairness {
            floor,
            turns: Turns::new(credit, Duration::ZERO),
            flows: vec![Flow::default(); classes.len()],
            virtual_time,
        }
    }

    /// It is that late now. What was admitted two periods ago gives nobody credit.
    pub fn turn(&mut self, now: Duration) {
        for _ in 0..self.turns.over(now).min(2) {
            self.virtual_time.values_mut().for_each(VirtualTime::turn);
        }
    }

    /// A class holds requests from now on, or no more.
    pub fn waits(&mut self, class: ClassId, of: &Class, waits: bool) {
        let time = self.virtual_time.get(&of.priority).copied();
        let time = time.unwrap_or_default();
        let joins = match self.turns.period().is_zero() {
            true => time.now,
            false => time.now - time.credit(),
        };
        let Some(flow) = self.flows.get_mut(class.0) else {
            return;
        };
        if waits && !flow.waits {
            (flow.seen, flow.got) = (0, 0);
            flow.start = flow.start.max(joins);
        }
        flow.waits = waits;
    }

    /// Whose turn it is among the waiting classes that `may` go; `None` if there
    /// is none.
    #[must_use]
    pub fn next(&self, classes: &[Class], may: impl Fn(ClassId) -> bool) -> Option<ClassId> {
        let waiting = || {
            let all = self.flows.iter().zip(classes).enumerate();
            all.filter(|(at, (flow, _))| flow.waits && may(ClassId(*at)))
        };
        // The lowest priority has waited for the least: it goes first.
        let owed = waiting()
            .filter(|(_, (flow, _))| self.owed(flow))
            .min_by_key(|(_, (_, class))| class.priority);
        let chosen = owed.or_else(|| {
            waiting().min_by(|(_, (a, of_a)), (_, (b, of_b))| {
                let priority = of_b.priority.cmp(&of_a.priority);
                priority.then(a.start.total_cmp(&b.start))
            })
        });
        chosen.map(|(at, _)| ClassId(at))
    }

    /// A request of this cost was admitted from a waiting class.
    pub fn admitted(&mut self, class: ClassId, of: &Class, cost: f64) {
        for flow in self.flows.iter_mut().filter(|flow| flow.waits) {
            flow.seen += 1;
        }
        let Some(flow) = self.flows.get_mut(class.0) else {
            return;
        };
        flow.got += 1;
        let time = self.virtual_time.entry(of.priority).or_default();
        // One that goes for its floor, or has credit, may be behind.
        time.now = time.now.max(flow.start);
        time.admitted[0] += cost;
        flow.start += cost / of.weight;
    }

    /// Without its next admission it would have less than its floor.
    fn owed(&self, flow: &Flow) -> bool {
        (flow.got as f64 + 1.0) <= self.floor * (flow.seen as f64 + 1.0)
    }
}

#[cfg(test)]
#[path = "fairness_tests.rs"]
mod tests;
