use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::class::Slo;

fn class(priority: u8, weight: f64) -> Class {
    Class {
        name: format!("{priority}/{weight}"),
        priority,
        weight,
        slo: Slo {
            first_token_ms: 1.0,
            end_to_end_ms: None,
        },
        queue_share: 0.5,
        queue_timeout: Duration::ZERO,
        critical: false,
        rate: None,
    }
}

/// What each class got of `turns`, while all of them wait all the time.
fn shares(classes: &[Class], floor: f64, turns: u32, cost: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut fairness = Fairness::new(classes.len(), floor);
    let mut got = vec![0.0; classes.len()];
    for (at, class) in classes.iter().enumerate() {
        fairness.waits(ClassId(at), class, true);
    }
    for _ in 0..turns {
        let next = fairness.next(classes, |_| true).unwrap();
        fairness.admitted(next, &classes[next.0], cost(next.0));
        got[next.0] += cost(next.0);
    }
    got
}

#[test]
fn a_higher_priority_goes_first_but_for_the_floor() {
    let classes = [class(1, 100.0), class(2, 1.0), class(0, 1.0)];
    assert_eq!(shares(&classes, 0.0, 1_000, |_| 1.0), [0.0, 1_000.0, 0.0]);
    assert_eq!(
        shares(&classes, 0.01, 1_001, |_| 1.0),
        [10.0, 981.0, 10.0],
        "1 % each for those that would starve"
    );
}

#[test]
fn who_comes_back_has_saved_nothing_up() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(2, 0.0);
    fairness.waits(ClassId(0), &classes[0], true);
    for _ in 0..1_000 {
        fairness.admitted(ClassId(0), &classes[0], 1.0);
    }
    fairness.waits(ClassId(1), &classes[1], true);
    let mut firsts = 0;
    for _ in 0..100 {
        let next = fairness.next(&classes, |_| true).unwrap();
        fairness.admitted(next, &classes[next.0], 1.0);
        firsts += usize::from(next.0 == 0);
    }
    assert!((49..=51).contains(&firsts), "{firsts} of 100");
}

#[test]
fn a_class_that_may_not_go_is_passed_over_and_loses_nothing() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(2, 0.0);
    assert_eq!(fairness.next(&classes, |_| true), None);
    for (at, class) in classes.iter().enumerate() {
        fairness.waits(ClassId(at), class, true);
    }
    for _ in 0..5 {
        let next = fairness.next(&classes, |class| class.0 == 1).unwrap();
        fairness.admitted(next, &classes[next.0], 1.0);
        assert_eq!(next, ClassId(1));
    }
    assert_eq!(fairness.next(&classes, |_| true), Some(ClassId(0)));
    fairness.waits(ClassId(0), &classes[0], false);
    assert_eq!(fairness.next(&classes, |_| true), Some(ClassId(1)));
}

proptest! {
    #[test]
    fn shares_follow_the_weights_whatever_a_request_costs(
        weights in prop::collection::vec(1_u32..20, 1..6),
        costs in prop::collection::vec(1_u32..50, 6),
    ) {
        let classes: Vec<_> = weights.iter().map(|w| class(0, f64::from(*w))).collect();
        let got = shares(&classes, 0.0, 5_000, |at| f64::from(costs[at]));
        let per_weight: Vec<_> = got.iter().zip(&weights).map(|(g, w)| g / f64::from(*w)).collect();
        for (a, one) in per_weight.iter().enumerate() {
            for (b, other) in per_weight.iter().enumerate() {
                // Never further apart than a request of each.
                let bound = f64::from(costs[a]) / f64::from(weights[a])
                    + f64::from(costs[b]) / f64::from(weights[b]);
                prop_assert!((one - other).abs() <= bound + 1e-6, "{:?}", per_weight);
            }
        }
    }

    #[test]
    fn whoever_waits_gets_its_floor(
        priorities in prop::collection::vec(0_u8..4, 2..5),
        floor in 0.001..0.2_f64,
    ) {
        let classes: Vec<_> = priorities.iter().map(|p| class(*p, 1.0)).collect();
        let turns = 3_000;
        for got in shares(&classes, floor, turns, |_| 1.0) {
            prop_assert!(got >= (floor * f64::from(turns)).floor() - classes.len() as f64, "{got}");
        }
    }
}
