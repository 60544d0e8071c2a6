//! The first two axes: how full the device is, and how full the gates are.

use std::collections::BTreeMap;

use super::gate::Gate;
use super::reading::Reading;
use super::snapshot::{Concurrency, Gpu};
use super::span::Span;

/// How full the device is: of several, the fullest.
pub(super) fn gpu(reading: &Reading) -> Gpu {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |of: &str, share: f64| {
        let most = shares.entry(of.to_owned()).or_insert(share);
        *most = most.max(share);
    };
    let policies = || reading.gates.iter().filter_map(|gate| gate.policy.as_ref());
    for policy in policies() {
        for (of, share) in &policy.gpu {
            add(of, *share);
        }
    }
    for worker in reading.front.iter().flat_map(|front| &front.workers) {
        if worker.blocks_total > 0 {
            add(
                "kv_blocks",
                worker.blocks as f64 / worker.blocks_total as f64,
            );
        }
    }
    let unknown = shares.is_empty().then(|| match policies().next() {
        Some(_) => "the engine has not told its state lately",
        None => "a worker reads the engine's state once it has a --policy; with --policy-mode observe that changes nothing else",
    });
    Gpu { shares, unknown }
}

/// How full the gates are, and what came and went lately.
pub(super) fn concurrency(pace: &Span) -> Concurrency {
    let mut sum = Concurrency::default();
    for gate in &pace.now.gates {
        let of_all = |limit: u64| limit.saturating_mul(gate.ranks);
        sum.running += gate.total(|lane| lane.running);
        sum.waiting += gate.total(|lane| lane.waiting);
        sum.queued += gate.total(|lane| lane.queued);
        sum.running_limit += of_all(gate.limits.running);
        sum.waiting_limit += of_all(gate.limits.waiting);
        sum.queue_limit += of_all(gate.limits.queued);
        sum.fallback |= gate.fallback;
        let classes = gate.policy.iter().flat_map(|policy| &policy.classes);
        sum.held += classes.map(|class| class.held).sum::<u64>();
    }
    let queues = pace.now.front.iter().flat_map(|front| &front.queues);
    let classes = queues.flat_map(|queue| &queue.classes);
    sum.held += classes.map(|class| class.held).sum::<u64>();
    sum.admitted_per_second = pace.per_second(pace.grown(Gate::admitted));
    // What clients of a frontend see is what counts there: its workers may refuse
    // what another then takes.
    let (received, refused) = match pace.now.front {
        Some(_) => (
            pace.grown_front(|front| front.outcomes.values().sum()),
            pace.grown_front(|front| front.outcome("rejected")),
        ),
        None => (
            pace.grown(|gate| gate.total(|lane| lane.received) + gate.refused_by_policy()),
            pace.grown(|gate| gate.rejected() + gate.refused_by_policy()),
        ),
    };
    sum.received_per_second = pace.per_second(received);
    sum.refused_per_second = pace.per_second(refused);
    sum
}
