//! Who is held, who is next, and who is sent away.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::office::{Office, at, said};
use crate::class::ClassId;
use crate::file;
use crate::reason::Reason;
use crate::shadow::Mode;

#[test]
fn who_waits_goes_in_by_priority_then_weight_then_arrival() {
    let mut office = Office::full(Mode::Enforce);
    for (who, class) in [
        (10, "bronze"),
        (11, "silver"),
        (12, "silver"),
        (13, "silver"),
        (14, "bronze"),
        (20, "gold"),
        (21, "gold"),
    ] {
        office.arrives(who, class, None);
    }
    assert_eq!(office.moved(), []);
    (0..7).for_each(|who| office.ends(who));
    let order: Vec<_> = office.moved().into_iter().map(|(who, _)| who).collect();
    assert_eq!(order[..2], [20, 21]);
    let silver: Vec<_> = order.iter().filter(|who| (11..14).contains(*who)).collect();
    assert_eq!(silver, [&11, &12, &13]);
    let bronze: Vec<_> = order.iter().filter(|who| [10, 14].contains(who)).collect();
    assert_eq!(bronze, [&10, &14]);
    // Two of silver for one of bronze.
    let silvers = order[2..5].iter().filter(|who| (11..14).contains(*who));
    assert_eq!(silvers.count(), 2, "{order:?}");
}

#[test]
fn a_timeout_comes_at_its_class_s_time_and_not_before() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(10, "bronze", None);
    office.now = 500;
    office.arrives(11, "gold", None);
    assert_eq!(office.desk.next_timeout(), Some(at(1_500)));
    office.now = 1_499;
    office.settle();
    assert_eq!(office.moved(), []);
    office.now = 1_500;
    office.settle();
    assert_eq!(office.moved(), said(&[(11, "queue_timeout")]));
    assert_eq!(office.desk.next_timeout(), Some(at(2_000)));
    office.now = 2_000;
    office.settle();
    assert_eq!(office.moved(), said(&[(10, "queue_timeout")]));
    assert_eq!(office.desk.next_timeout(), None);
}

#[test]
fn a_class_that_holds_none_is_refused_at_once() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(10, "lead", None);
    assert_eq!(office.moved(), said(&[(10, "concurrency_limit")]));
    // Nor when it is the gate alone that has no room.
    let mut office = Office::new(Mode::Enforce);
    office.room = 0;
    office.arrives(11, "lead", None);
    office.arrives(12, "gold", None);
    assert_eq!(office.moved(), said(&[(11, "concurrency_limit")]));
    assert_eq!(office.desk.held(ClassId(2)), 1);
}

#[test]
fn a_full_rank_holds_back_its_class_alone() {
    let mut office = Office::new(Mode::Enforce);
    office.arrives(1, "silver", Some(9));
    office.arrives(2, "silver", None);
    assert_eq!(office.moved(), [], "in order inside a class");
    office.arrives(3, "bronze", None);
    assert_eq!(office.moved(), said(&[(3, "enters")]));
    assert!(office.desk.leaves(at(1), office.places[&1]));
    office.settle();
    assert_eq!(office.moved(), said(&[(2, "enters")]));
}

#[test]
fn without_a_state_all_are_left_to_the_gate() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(10, "bronze", None);
    office.arrives(11, "gold", None);
    office.observe(None);
    assert_eq!(
        office.moved(),
        said(&[(11, "gate alone"), (10, "gate alone")])
    );
    office.arrives(12, "gold", None);
    assert_eq!(office.moved(), said(&[(12, "gate alone")]));
}

#[test]
fn observing_leaves_all_to_the_gate_and_counts_what_it_would_do() {
    let mut office = Office::new(Mode::Observe);
    office.arrives(1, "gold", None);
    office.observe(Some(999));
    office.arrives(2, "gold", None);
    office.arrives(3, "bronze", None);
    let all = office.moved();
    assert!(all.iter().all(|(_, what)| what == "gate alone"), "{all:?}");
    let of = |class: usize| &office.desk.decisions()[class];
    assert_eq!(of(2).admitted, 1);
    assert_eq!(of(1).refused(Reason::NoncriticalShed), 1);
}

#[test]
fn who_has_become_hopeless_leaves_with_the_next_state() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(10, "bronze", None);
    office.observe(Some(900));
    assert_eq!(office.moved(), said(&[(10, "noncritical_shed")]));
}

#[test]
fn no_more_are_held_than_ten_seconds_of_drain() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(100, "silver", None);
    // One a second ends while one is held.
    for second in 1..=4 {
        office.now = 1_000 * second;
        office.ends(second - 1);
        office.arrives(100 + second, "silver", None);
    }
    (200..300).for_each(|who| office.arrives(who, "silver", None));
    let refused = office.moved();
    let full = refused.iter().filter(|(_, what)| what == "queue_full");
    assert!(full.count() >= 85, "{refused:?}");
    assert!(office.desk.held(ClassId(0)) >= 8);
}

#[test]
fn new_settings_keep_who_is_held() {
    let mut office = Office::full(Mode::Enforce);
    office.arrives(10, "bronze", None);
    office.arrives(11, "gold", None);
    office.arrives(12, "silver", None);
    let all = "[[class]]\nname = \"gold\"\nfirst_token_ms = 9000\nqueue_timeout_ms = 9000";
    office.desk.reload(file::parse(all).unwrap());
    assert_eq!(office.moved(), []);
    assert_eq!(office.desk.held(ClassId(0)), 3);
    assert!(
        office.desk.leaves(at(0), office.places[&11]),
        "its place is good"
    );
    assert!(!office.desk.leaves(at(0), office.places[&11]));
    (0..4).for_each(|who| office.ends(who));
    assert_eq!(office.moved(), said(&[(10, "enters"), (12, "enters")]));
    assert_eq!(office.desk.next_timeout(), None);
}

proptest! {
    #[test]
    fn each_request_moves_once_and_none_is_lost(
        steps in prop::collection::vec((0_u8..6, 0_usize..4, any::<prop::sample::Index>(), 1_u64..400), 1..120),
    ) {
        let mut office = Office::new(Mode::Enforce);
        let (mut arrived, mut left) = (0_u64, 0_u64);
        let mut entered: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let mut class_of = BTreeMap::new();
        for (step, class, which, ms) in steps {
            office.now += ms;
            match step {
                0..=2 => {
                    let name = ["silver", "bronze", "gold", "lead"][class];
                    class_of.insert(arrived, class);
                    office.arrives(arrived, name, (step == 2).then_some(9));
                    arrived += 1;
                }
                3 if !office.inside.is_empty() => {
                    let who = *which.get(&office.inside.keys().copied().collect::<Vec<_>>());
                    office.ends(who);
                }
                4 if !office.places.is_empty() => {
                    let who = *which.get(&office.places.keys().copied().collect::<Vec<_>>());
                    let place = office.places.remove(&who).unwrap();
                    prop_assert!(office.desk.leaves(at(office.now), place));
                    left += 1;
                }
                _ => {
                    let used = 10 * office.inside.len() as u64;
                    office.observe((class > 0).then_some(used));
                }
            }
            office.settle();
            for (who, what) in office.moved() {
                if what == "enters" {
                    entered.entry(class_of[&who]).or_default().push(who);
                }
            }
            let held: u64 = (0..4).map(|class| office.desk.held(ClassId(class))).sum();
            prop_assert_eq!(held, office.places.len() as u64);
            let told: u64 = office.desk.decisions().iter()
                .map(|c| c.admitted + c.gate_alone + c.refused_in_all() + c.left).sum();
            prop_assert_eq!(told + held, arrived);
            prop_assert_eq!(office.inside.len() as u64 + office.room, 8);
            if let Some(next) = office.desk.next_timeout() {
                prop_assert!(next > at(office.now), "nobody is held beyond its time");
            }
        }
        let left_counted: u64 = office.desk.decisions().iter().map(|c| c.left).sum();
        prop_assert_eq!(left_counted, left);
        for order in entered.values() {
            prop_assert!(order.is_sorted(), "in order inside a class");
        }
    }
}
