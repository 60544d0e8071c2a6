//! What became of the requests, by class.

use std::time::Duration;

use hdrhistogram::Histogram;
use tidegate_policy::class::{ClassId, Classes};
use tidegate_policy::reason::Reason;
use tidegate_policy::shadow::Counts;

/// Longest latency that is told apart, in microseconds: a day.
const LONGEST_US: u64 = 86_400_000_000;

/// What became of one class's requests. All numbers are of requests that arrived
/// within the measured time.
#[derive(Clone, Debug)]
pub struct ClassReport {
    /// The class.
    pub name: String,
    /// Requests that arrived.
    pub arrived: u64,
    /// How often they came to the door: more often than they arrived where refused
    /// clients come again.
    pub asked: u64,
    /// Answers that ended, in time or not.
    pub ended: u64,
    /// Answers that kept the class's promise.
    pub kept: u64,
    /// Tokens read and generated for those.
    pub kept_tokens: u64,
    /// Requests that the gate refused.
    pub refused_by_gate: u64,
    refused: [u64; Reason::ALL.len()],
    first_token: Option<Histogram<u64>>,
    end_to_end: Option<Histogram<u64>>,
    measured: Duration,
}

/// What became of all requests.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each class, in the classes' order.
    pub classes: Vec<ClassReport>,
    /// What the policy decided about each class, over all requests, carried out
    /// or not; empty without a policy.
    pub decisions: Vec<Counts>,
    /// The share of the limit that the policy used at the end, if there is one.
    pub target: Option<f64>,
    /// Tokens that the engine computed again because it had preempted.
    pub lost_tokens: u64,
    /// Most memory in use at any sample, 0 to 1.
    pub most_memory: f64,
}

impl Report {
    pub(super) fn new(classes: &Classes, measured: Duration) -> Self {
        let names = classes.all().iter().map(|class| class.name.as_str());
        Report {
            classes: names.map(|name| ClassReport::new(name, measured)).collect(),
            decisions: Vec::new(),
            target: None,
            lost_tokens: 0,
            most_memory: 0.0,
        }
    }

    /// A class's numbers; an id of other classes gives the first.
    pub(super) fn class(&mut self, id: ClassId) -> &mut ClassReport {
        let at = id.0.min(self.classes.len().saturating_sub(1));
        &mut self.classes[at]
    }

    /// All classes together.
    #[must_use]
    pub fn in_all(&self) -> ClassReport {
        let measured = self.classes.first().map_or(Duration::ZERO, |c| c.measured);
        let all = ClassReport::new("all", measured);
        self.classes.iter().fold(all, ClassReport::with)
    }
}

impl ClassReport {
    fn new(name: &str, measured: Duration) -> Self {
        ClassReport {
            name: name.to_owned(),
            arrived: 0,
            asked: 0,
            ended: 0,
            kept: 0,
            kept_tokens: 0,
            refused_by_gate: 0,
            refused: [0; Reason::ALL.len()],
            first_token: histogram(),
            end_to_end: histogram(),
            measured,
        }
    }

    fn with(mut self, other: &ClassReport) -> Self {
        self.arrived += other.arrived;
        self.asked += other.asked;
        self.ended += other.ended;
        self.kept += other.kept;
        self.kept_tokens += other.kept_tokens;
        self.refused_by_gate += other.refused_by_gate;
        for (sum, more) in self.refused.iter_mut().zip(other.refused) {
            *sum += more;
        }
        for (own, more) in [
            (&mut self.first_token, &other.first_token),
            (&mut self.end_to_end, &other.end_to_end),
        ] {
            if let (Some(own), Some(more)) = (own, more) {
                // The same bounds: always possible.
                let _ = own.add(more);
            }
        }
        self
    }

    pub(super) fn refuse(&mut self, reason: Option<Reason>) {
        match reason {
            Some(reason) => self.refused[reason.index()] += 1,
            None => self.refused_by_gate += 1,
        }
    }

    /// An answer ended, which took so many tokens and kept the promise or did not.
    pub(super) fn end(&mut self, first_token: Duration, end: Duration, tokens: u64, kept: bool) {
        self.ended += 1;
        if kept {
            self.kept += 1;
            self.kept_tokens += tokens;
        }
        for (histogram, time) in [
            (&mut self.first_token, first_token),
            (&mut self.end_to_end, end),
        ] {
            if let Some(histogram) = histogram {
                let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                histogram.saturating_record(us.clamp(1, LONGEST_US));
            }
        }
    }

    /// Requests that the policy refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason.index()]
    }

    /// Requests that were refused, by whom and why ever.
    #[must_use]
    pub fn refused_in_all(&self) -> u64 {
        self.refused_by_gate + self.refused.iter().sum::<u64>()
    }

    /// Answers per second that kept the promise.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.per_second(self.kept)
    }

    /// Tokens per second, read and generated, of answers that kept the promise. Where
    /// lengths differ much this is the engine's useful work: whoever is let in under
    /// overload may be the shorter ones, and more of them.
    #[must_use]
    pub fn token_goodput(&self) -> f64 {
        self.per_second(self.kept_tokens)
    }

    fn per_second(&self, count: u64) -> f64 {
        let seconds = self.measured.as_secs_f64();
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    }

    /// The share of answers that kept the promise; `None` without answers.
    #[must_use]
    pub fn attainment(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.kept as f64 / self.ended as f64)
    }

    /// p50, p99 and p99.9 of the time to the first token, in milliseconds;
    /// `None` without answers.
    #[must_use]
    pub fn first_token_ms(&self) -> Option<[f64; 3]> {
        quantiles_ms(self.first_token.as_ref())
    }

    /// The same of the time to the end of the answer.
    #[must_use]
    pub fn end_to_end_ms(&self) -> Option<[f64; 3]> {
        quantiles_ms(self.end_to_end.as_ref())
    }
}

/// `None` only for bounds that are not valid, which these are.
fn histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST_US, 3).ok()
}

fn quantiles_ms(histogram: Option<&Histogram<u64>>) -> Option<[f64; 3]> {
    let histogram = histogram.filter(|histogram| !histogram.is_empty())?;
    Some([0.5, 0.99, 0.999].map(|q| histogram.value_at_quantile(q) as f64 / 1e3))
}
