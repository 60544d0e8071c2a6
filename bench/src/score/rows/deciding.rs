//! What the policy costs a request, where there is one.

use std::hint::black_box;
use std::time::Duration;

use tidegate_policy::decision::Decision;

use crate::judged::judge;
use crate::timing::alone;

use super::super::{Bar, Contender, Row, Unit};
use super::Make;

pub(super) const ROWS: &[Make] = &[decides];

fn decides() -> Row {
    Row {
        name: "the policy decides",
        unit: Unit::Nanoseconds,
        long: false,
        ours: looked_up_and_decided().called("profile and decision"),
        peers: vec![decided().called("decision alone")],
        bars: vec![Bar::absolute(1000.0)],
        note: "expected latency from the model's table, then memory and deadline; by the default file, with a state \
               that is fresh. Without a policy none of it is on the path",
    }
}

const NOW: Duration = Duration::from_secs(3);

fn looked_up_and_decided() -> Contender {
    let judge = judge();
    let gold = judge.settings().classes.choose(None, Some("gold"), "m");
    Contender::new("", move |plan| {
        alone(plan.span, |n| {
            for _ in 0..n {
                let profile = judge.profile("m", gold, black_box(500), Some(200));
                let decision = judge.decide(NOW, &profile, 0.0, 0);
                assert_eq!(black_box(decision), Decision::Admit);
            }
        })
    })
}

fn decided() -> Contender {
    let judge = judge();
    let gold = judge.settings().classes.choose(None, Some("gold"), "m");
    let profile = judge.profile("m", gold, 500, Some(200));
    Contender::new("", move |plan| {
        alone(plan.span, |n| {
            for _ in 0..n {
                let decision = judge.decide(NOW, black_box(&profile), 0.0, 0);
                assert_eq!(black_box(decision), Decision::Admit);
            }
        })
    })
}
