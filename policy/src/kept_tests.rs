use proptest::prelude::*;

use super::*;
use crate::class::tests::placed as class;

const ALL: Room = Room {
    requests: 100,
    tokens: 10_000,
};

fn room(requests: u64) -> Room {
    Room {
        requests,
        tokens: 100 * requests,
    }
}

/// A flood that has all but a little, and a quiet class that lately had `quiet`.
fn beside_a_flood(quiet: u64) -> (Kept, Vec<Taken>) {
    let mut kept = Kept::new(2, PERIOD);
    let before: Vec<_> = (0..quiet)
        .map(|_| kept.enters(ClassId(0), Room::of_one(100)))
        .collect();
    before.into_iter().for_each(|taken| kept.leaves(taken));
    let flood = (0..90)
        .map(|_| kept.enters(ClassId(1), Room::of_one(100)))
        .collect();
    (kept, flood)
}

const QUIET: ClassId = ClassId(0);
const FLOOD: ClassId = ClassId(1);

#[test]
fn what_was_lately_needed_is_kept_up_to_the_share() {
    for (needed, expected) in [(0, 0), (1, 1), (10, 10), (50, 50), (80, 50)] {
        let (kept, _flood) = beside_a_flood(needed);
        let classes = [class(0, 1.0), class(0, 1.0)];
        let from_flood = kept.withheld_from(FLOOD, &classes, ALL);
        assert_eq!(from_flood.requests, expected, "{needed}");
        assert_eq!(from_flood.tokens, (100 * needed).min(5_000), "{needed}");
        assert_eq!(kept.withheld_from(QUIET, &classes, ALL), Room::default());
    }
}

#[test]
fn what_it_has_again_is_kept_no_more_and_a_class_that_holds_keeps_nothing() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let (mut kept, _flood) = beside_a_flood(10);
    let again: Vec<_> = (0..4)
        .map(|_| kept.enters(QUIET, Room::of_one(100)))
        .collect();
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), room(6));
    kept.holds(QUIET, room(2));
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), Room::default());
    kept.holds(QUIET, Room::default());
    again.into_iter().for_each(|taken| kept.leaves(taken));
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), room(10));
}

#[test]
fn what_was_held_was_needed_too() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let (mut kept, _flood) = beside_a_flood(0);
    kept.holds(QUIET, room(20));
    kept.holds(QUIET, Room::default());
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), room(20));
}

#[test]
fn nothing_is_kept_for_a_lower_priority_nor_from_one_that_has_less_than_its_share() {
    let (kept, _flood) = beside_a_flood(10);
    let of = |quiet, flood| kept.withheld_from(FLOOD, &[quiet, flood], ALL).requests;
    assert_eq!(of(class(0, 1.0), class(1, 1.0)), 0);
    assert_eq!(of(class(1, 1.0), class(0, 1.0)), 10);
    // 90 of 100 is less than 11 of 12.
    assert_eq!(of(class(0, 1.0), class(0, 11.0)), 0);
    assert_eq!(of(class(0, 1.0), class(0, 8.0)), 10);
}

#[test]
fn a_need_is_forgotten_after_a_period_and_sooner_by_who_is_silent() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let part = PERIOD / PARTS as u32;
    let after = |parts: u32, asks: bool| {
        let (mut kept, _flood) = beside_a_flood(40);
        for at in 1..=parts {
            kept.turn(part * at);
            if asks {
                let one = kept.enters(QUIET, room(1));
                kept.leaves(one);
            }
        }
        kept.withheld_from(FLOOD, &classes, ALL).requests
    };
    let silent: Vec<_> = (0..4).map(|parts| after(parts, false)).collect();
    assert_eq!(silent, [40, 40, 0, 0]);
    let asking: Vec<_> = (0..6).map(|parts| after(parts, true)).collect();
    assert_eq!(asking, [40, 40, 40, 40, 1, 1]);
    // Nobody looked meanwhile.
    let (mut kept, _flood) = beside_a_flood(40);
    kept.turn(PERIOD);
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL).requests, 0);
    // It asks again, and finds nothing.
    kept.misses(QUIET, room(30));
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), room(30));
}

#[test]
fn a_period_of_nothing_keeps_nothing() {
    let mut kept = Kept::new(2, Duration::ZERO);
    kept.holds(QUIET, room(10));
    kept.holds(QUIET, Room::default());
    let _flood = kept.enters(FLOOD, room(90));
    let classes = [class(0, 1.0), class(0, 1.0)];
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), Room::default());
}

#[test]
fn who_is_inside_when_the_classes_change_counts_for_none_of_them() {
    let classes = [class(0, 1.0), class(0, 1.0)];
    let (mut kept, flood) = beside_a_flood(10);
    kept.reset(2, PERIOD);
    kept.holds(QUIET, room(10));
    kept.holds(QUIET, Room::default());
    let again: Vec<_> = (0..90).map(|_| kept.enters(FLOOD, room(1))).collect();
    flood.into_iter().for_each(|taken| kept.leaves(taken));
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), room(10));
    again.into_iter().for_each(|taken| kept.leaves(taken));
    assert_eq!(kept.withheld_from(FLOOD, &classes, ALL), Room::default());
}

proptest! {
    /// Whatever the others needed, a class gets its share.
    #[test]
    fn never_is_so_much_kept_that_a_class_has_less_than_its_share(
        weights in prop::collection::vec(1_u32..20, 2..6),
        needed in prop::collection::vec(0_u64..200, 6),
        inside in prop::collection::vec(0_u64..100, 6),
        all in 0_u64..1_000,
    ) {
        let classes: Vec<_> = weights.iter().map(|w| class(0, f64::from(*w))).collect();
        let mut kept = Kept::new(classes.len(), PERIOD);
        for at in 0..classes.len() {
            kept.holds(ClassId(at), room(needed[at]));
            kept.holds(ClassId(at), Room::default());
            let _ = kept.enters(ClassId(at), room(inside[at]));
        }
        let in_all: f64 = weights.iter().copied().map(f64::from).sum();
        for (at, weight) in weights.iter().enumerate() {
            let share = (all as f64 * f64::from(*weight) / in_all) as u64;
            let from = kept.withheld_from(ClassId(at), &classes, room(all));
            prop_assert!(from.requests <= all - share, "{from:?}");
            prop_assert!(inside[at] >= share || from.requests == 0, "{from:?}");
        }
    }
}
