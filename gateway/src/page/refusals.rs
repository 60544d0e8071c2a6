//! Refusals by reason, of gates, of policies and of a frontend.

use std::collections::BTreeMap;

use serde::Serialize;

use super::front::Front;
use super::gate::Gate;
use super::policy::Class;
use super::span::Span;

/// Refusals for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusals {
    /// The reason, as metrics have it.
    pub reason: String,
    /// Whether it was carried out, and not only counted.
    pub carried_out: bool,
    /// Since the start.
    pub total: u64,
    /// Lately.
    pub per_second: f64,
}

/// A reason, and whether it was carried out.
type Reason = (String, bool);

/// How many, by reason.
#[derive(Debug, Default)]
struct Counted(BTreeMap<Reason, u64>);

impl Counted {
    /// Of a worker: its gate's, and its policy's.
    fn of_gate(gate: &Gate) -> Self {
        let mut all = Self::default();
        all.one("rank_full", true, gate.total(|lane| lane.rejected_rank));
        all.one("worker_full", true, gate.total(|lane| lane.rejected_worker));
        if let Some(policy) = &gate.policy {
            all.classes(&policy.classes, !policy.observes);
        }
        all
    }

    /// Of a frontend: its policy's, and those that no policy decided.
    fn of_front(front: &Front) -> Self {
        let mut all = Self::default();
        for queue in &front.queues {
            all.classes(&queue.classes, !queue.observes);
        }
        let others = front.outcome("rejected");
        let others = others.saturating_sub(front.refused_by_policy());
        all.one("every_worker_overloaded", true, others);
        all
    }

    fn one(&mut self, reason: &str, carried_out: bool, count: u64) {
        let sum = self.0.entry((reason.to_owned(), carried_out)).or_default();
        *sum = sum.saturating_add(count);
    }

    fn classes(&mut self, classes: &[Class], carried_out: bool) {
        for (reason, count) in classes.iter().flat_map(|class| &class.refused) {
            self.one(reason, carried_out, *count);
        }
    }

    fn add(&mut self, other: &Self) {
        for ((reason, carried_out), count) in &other.0 {
            self.one(reason, *carried_out, *count);
        }
    }

    /// By how much each grew. One that was counted anew has not grown.
    fn since(self, then: &Self) -> Self {
        let grown = self.0.into_iter().map(|(reason, count)| {
            let grown = count.saturating_sub(then.count(&reason));
            (reason, grown)
        });
        Self(grown.collect())
    }

    fn count(&self, reason: &Reason) -> u64 {
        self.0.get(reason).copied().unwrap_or_default()
    }

    /// With how many a second each was lately, the most frequent first.
    fn shown(self, lately: impl Fn(&Reason) -> f64) -> Vec<Refusals> {
        let mut all: Vec<Refusals> = self
            .0
            .into_iter()
            .map(|(reason, total)| Refusals {
                per_second: lately(&reason),
                carried_out: reason.1,
                reason: reason.0,
                total,
            })
            .collect();
        all.sort_by(|one, other| {
            let carried_out = other.carried_out.cmp(&one.carried_out);
            carried_out.then(other.total.cmp(&one.total))
        });
        all
    }
}

/// All of them, with how many a second each was lately.
pub(super) fn refusals(pace: &Span) -> Vec<Refusals> {
    let fronts = pace.then.front.as_ref().zip(pace.now.front.as_ref());
    let mut lately = Counted::default();
    for (then, now) in pace.gates() {
        lately.add(&Counted::of_gate(now).since(&Counted::of_gate(then)));
    }
    if let Some((then, now)) = fronts {
        lately.add(&Counted::of_front(now).since(&Counted::of_front(then)));
    }
    let mut all = Counted::default();
    let gates = pace.now.gates.iter().map(Counted::of_gate);
    let front = pace.now.front.iter().map(Counted::of_front);
    gates.chain(front).for_each(|one| all.add(&one));
    all.shown(|reason| pace.per_second(lately.count(reason)))
}
