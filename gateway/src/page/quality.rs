//! The third axis: what clients get.

use super::gate::Gate;
use super::histogram::Histogram;
use super::named::whole;
use super::policy::Policy;
use super::snapshot::{Counts, Quality};
use super::span::Span;

/// What they get as a frontend knows it, or else a policy, or else a gate alone.
pub(super) fn quality(pace: &Span, window: &Span) -> Quality {
    let policy = || {
        let mut gates = window.now.gates.iter();
        gates.find_map(|gate| gate.policy.as_ref())
    };
    let told = if window.now.front.is_some() {
        by_frontend(pace, window)
    } else if let Some(policy) = policy() {
        by_policy(policy)
    } else {
        by_gates(pace, window)
    };
    let waits = merged(window, |gate| &gate.queue_wait);
    Quality {
        first_token: told.first_token.or_else(|| first_token(window)),
        queue_wait: waits.quantiles([0.5, 0.99, 0.999]),
        queue_waits: whole(waits.count()),
        ..told
    }
}

/// Of a frontend's clients, those that were answered.
fn by_frontend(pace: &Span, window: &Span) -> Quality {
    let served = window.grown_front(|front| front.outcome("ok"));
    // Neither clients that left nor mistakes of theirs count against it.
    let failed = ["rejected", "unavailable", "worker_error"];
    let failed = window.grown_front(|front| failed.map(|how| front.outcome(how)).iter().sum());
    Quality {
        counts: Counts::Answered,
        goodput: pace.per_second(pace.grown_front(|front| front.outcome("ok"))),
        attainment: share(served, failed),
        ..Quality::default()
    }
}

/// Of a policy's answers, those within their class's promise.
fn by_policy(policy: &Policy) -> Quality {
    let classes = &policy.classes;
    let goodput = classes.iter().map(|class| class.goodput).sum();
    // Each class's share is of so many answers.
    let told = classes.iter().filter_map(|class| {
        let share = class.attainment.filter(|share| *share > 0.0)?;
        Some(class.goodput / share)
    });
    let answers: f64 = told.sum();
    let known = classes.iter().any(|class| class.attainment.is_some());
    let kept = if answers > 0.0 {
        goodput / answers
    } else {
        0.0
    };
    let most = |at: usize| {
        let told = classes.iter().filter_map(|class| class.first_token[at]);
        told.reduce(f64::max)
    };
    let slowest = [most(0), most(1), most(2)];
    Quality {
        counts: Counts::Promise,
        goodput,
        attainment: known.then_some(kept),
        first_token: match slowest {
            [Some(p50), Some(p99), Some(p999)] => Some([p50, p99, p999]),
            _ => None,
        },
        ..Quality::default()
    }
}

/// Of a gate's requests, those that were admitted.
fn by_gates(pace: &Span, window: &Span) -> Quality {
    Quality {
        counts: Counts::Admitted,
        goodput: pace.per_second(pace.grown(Gate::admitted)),
        attainment: share(window.grown(Gate::admitted), window.grown(Gate::rejected)),
        ..Quality::default()
    }
}

/// Time to the first token, as a frontend measured it.
fn first_token(window: &Span) -> Option<[f64; 3]> {
    let (then, now) = window.then.front.as_ref().zip(window.now.front.as_ref())?;
    let first_token = now.first_token.since(&then.first_token);
    first_token.quantiles([0.5, 0.99, 0.999])
}

/// What all gates measured in between.
fn merged(window: &Span, of: impl Fn(&Gate) -> &Histogram) -> Histogram {
    let each = window.gates().map(|(then, now)| of(now).since(of(then)));
    each.fold(Histogram::default(), |sum, one| sum.and(&one))
}

fn share(of: u64, others: u64) -> Option<f64> {
    let all = of + others;
    (all > 0).then(|| of as f64 / all as f64)
}
