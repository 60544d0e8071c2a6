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
    let mut fairness = Fairness::new(classes.len(), floor, CREDIT);
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

/// Of 100 turns after 30 s, how many go to a class that never went away, beside one
/// that comes back, while it took `per_second` turns a second.
fn firsts_beside_one_that_comes_back(credit: Duration, per_second: u64) -> usize {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(2, 0.0, credit);
    fairness.waits(ClassId(0), &classes[0], true);
    for turn in 0..30 * per_second {
        fairness.turn(Duration::from_secs(turn) / per_second as u32);
        fairness.admitted(ClassId(0), &classes[0], 1.0);
    }
    fairness.waits(ClassId(1), &classes[1], true);
    let mut firsts = 0;
    for _ in 0..100 {
        let next = fairness.next(&classes, |_| true).unwrap();
        fairness.admitted(next, &classes[next.0], 1.0);
        firsts += usize::from(next.0 == 0);
    }
    firsts
}

#[test]
fn who_comes_back_has_saved_up_a_few_seconds_and_no_more() {
    let nothing = firsts_beside_one_that_comes_back(Duration::ZERO, 10);
    assert!((49..=51).contains(&nothing), "{nothing} of 100");
    // 3 to 6 s of 10 turns each go to the other first; the rest is shared.
    let some = firsts_beside_one_that_comes_back(CREDIT, 10);
    assert!((20..=35).contains(&some), "{some} of 100");
    // However long it was away.
    let all = firsts_beside_one_that_comes_back(CREDIT, 1_000);
    assert_eq!(all, 0);
}

#[test]
fn credit_ends_with_the_time_it_is_for() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(2, 0.0, CREDIT);
    fairness.waits(ClassId(0), &classes[0], true);
    (0..50).for_each(|_| fairness.admitted(ClassId(0), &classes[0], 1.0));
    // Nobody was admitted for two periods, nor looked at.
    fairness.turn(2 * CREDIT);
    fairness.waits(ClassId(1), &classes[1], true);
    fairness.admitted(ClassId(1), &classes[1], 1.0);
    fairness.admitted(ClassId(1), &classes[1], 1.0);
    assert_eq!(fairness.next(&classes, |_| true), Some(ClassId(0)));
}

#[test]
fn a_class_that_may_not_go_is_passed_over_and_loses_nothing() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(2, 0.0, Duration::ZERO);
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
