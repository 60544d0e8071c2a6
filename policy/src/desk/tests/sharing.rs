//! Room that is kept, credit, and who is charged for what.

use super::office::{Office, at, said};
use crate::class::ClassId;
use crate::kept::PERIOD;
use crate::reason::Reason;
use crate::shadow::Mode;

/// Silver has had two inside lately, of eight places; bronze is about to flood.
fn after_silver_had_two() -> Office {
    let mut office = Office::keeping_room(Mode::Enforce);
    (0..2).for_each(|who| office.arrives(who, "silver", None));
    (0..2).for_each(|who| office.ends(who));
    office.moved();
    office
}

#[test]
fn a_flood_leaves_the_room_that_another_class_lately_needed() {
    let mut office = after_silver_had_two();
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    // Two places are kept, of a share of five.
    let entered = office.moved();
    assert_eq!(entered.len(), 6, "{entered:?}");
    assert_eq!(office.room, 2);
    let bronze = &office.desk.decisions()[1];
    assert_eq!(
        bronze.waited(Reason::RoomKept),
        1,
        "the others wait behind it"
    );
    (20..22).for_each(|who| office.arrives(who, "silver", None));
    let expected = said(&[(20, "enters"), (21, "enters")]);
    assert_eq!(office.moved(), expected);
}

#[test]
fn room_is_kept_no_longer_than_it_was_needed_lately() {
    let mut office = after_silver_had_two();
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    office.moved();
    // Those who were held are gone by then, and nothing is kept any more.
    for period in 1..=2 {
        office.now += u64::try_from(PERIOD.as_millis()).unwrap() * period;
        office.observe(Some(0));
    }
    (30..32).for_each(|who| office.arrives(who, "bronze", None));
    let entered = office
        .moved()
        .into_iter()
        .filter(|(_, what)| what == "enters");
    assert_eq!(entered.count(), 2);
    assert_eq!(office.room, 0);
}

/// The flood's turn comes first, and it has to wait: others do not.
#[test]
fn who_waits_for_kept_room_holds_back_its_class_alone() {
    let mut office = after_silver_had_two();
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    office.moved();
    office.arrives(30, "gold", None);
    assert_eq!(office.moved(), said(&[(30, "enters")]));
    assert_eq!(office.desk.held(ClassId(1)), 4);
}

#[test]
fn a_class_that_holds_none_is_told_that_room_is_kept() {
    let mut office = after_silver_had_two();
    (10..16).for_each(|who| office.arrives(who, "lead", None));
    office.moved();
    office.arrives(16, "lead", None);
    assert_eq!(office.moved(), said(&[(16, "room_kept")]));
}

#[test]
fn memory_is_kept_as_places_are() {
    let mut office = after_silver_had_two();
    // 20 of 100 tokens are kept, what silver had; bronze needs 15 each.
    office.memory = 100;
    office.observe(Some(0));
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    let entered = office.moved();
    assert_eq!(entered.len(), 5, "one more place is free: {entered:?}");
    office.arrives(20, "silver", None);
    assert_eq!(office.moved(), said(&[(20, "enters")]));
}

#[test]
fn who_comes_back_is_not_charged_for_again() {
    let mut office = Office::new(Mode::Enforce);
    office.room = 1;
    office.arrives(0, "silver", None);
    // It finds no room three times, and silver would be three turns behind.
    for _ in 0..3 {
        office.returns(0, "silver");
        office.room = 1;
        office.settle();
    }
    office.moved();
    (1..4).for_each(|who| office.arrives(who, "silver", None));
    (11..14).for_each(|who| office.arrives(who, "bronze", None));
    office.now = 1;
    office.room = 3;
    office.settle();
    // Two of silver for one of bronze, and one of silver is in already.
    assert_eq!(
        office.moved(),
        said(&[(11, "enters"), (1, "enters"), (2, "enters")])
    );
    assert_eq!(office.desk.next_timeout(), Some(at(2_000)));
}
