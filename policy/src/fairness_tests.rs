use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::class::tests::placed as class;

/// What each class got of `turns`, while all of them wait all the time.
fn shares(classes: &[Class], floor: f64, turns: u32, cost: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut fairness = Fairness::new(classes, floor, CREDIT);
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

/// Admits one each 100 ms for 30 s, from the first class. Then the others come back: who
/// is admitted next.
fn after_30_s(classes: &[Class], credit: Duration, next: usize) -> Vec<usize> {
    let mut fairness = Fairness::new(classes, 0.0, credit);
    fairness.waits(ClassId(0), &classes[0], true);
    for turn in 0..300 {
        fairness.turn(Duration::from_millis(100 * turn));
        fairness.admitted(ClassId(0), &classes[0], 1.0);
    }
    for (at, class) in classes.iter().enumerate().skip(1) {
        fairness.waits(ClassId(at), class, true);
    }
    let mut turn = || {
        let next = fairness.next(classes, |_| true).unwrap();
        fairness.admitted(next, &classes[next.0], 1.0);
        next.0
    };
    (0..next).map(|_| turn()).collect()
}

fn of_the_first(turns: &[usize]) -> usize {
    turns.iter().filter(|class| **class == 0).count()
}

#[test]
fn who_comes_back_has_saved_up_its_share_of_a_few_seconds() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let without = of_the_first(&after_30_s(&classes, Duration::ZERO, 100));
    assert!((49..=51).contains(&without), "{without} of 100");
    // Half of 50 to 100 admissions are the other's first, and then they share.
    let with = after_30_s(&classes, CREDIT, 200);
    let first = with.iter().position(|class| *class == 0).unwrap();
    assert!((25..=52).contains(&first), "{first}");
    let shared = of_the_first(&with[first..]) as f64 / (200 - first) as f64;
    assert!((0.48..=0.52).contains(&shared), "{shared}");
}

#[test]
fn credit_ends_with_the_time_it_is_for() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let mut fairness = Fairness::new(&classes, 0.0, CREDIT);
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
    let mut fairness = Fairness::new(&classes, 0.0, Duration::ZERO);
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
    /// However many come back at once, and whatever their weights are.
    #[test]
    fn nobody_waits_longer_for_the_credit_of_others_than_it_is_for(
        weights in prop::collection::vec(1_u32..20, 2..7),
    ) {
        let classes: Vec<_> = weights.iter().map(|w| class(0, f64::from(*w))).collect();
        let turns = after_30_s(&classes, CREDIT, 300);
        // Two periods are 100 admissions; then each has its weight's turns, and one more,
        // for one of the first.
        let round = classes.iter().map(|of| of.weight / classes[0].weight);
        let most = 100.0 + round.map(|turns| turns.ceil() + 1.0).sum::<f64>();
        let first = turns.iter().position(|class| *class == 0);
        prop_assert!(first.is_some_and(|first| first as f64 <= most), "{first:?} {most}");
    }

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
