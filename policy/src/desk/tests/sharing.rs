//! Room that is kept, credit, and who is charged for what.

use super::office::{Office, said};
use crate::class::ClassId;
use crate::kept::PERIOD;
use crate::profile::InputSize;
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
    assert_eq!(bronze.waited(Reason::RoomKept), 4);
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

/// Copper has had a turn, and with its weight bronze is next for a while.
fn after_silver_had_two_and_copper_one() -> Office {
    let mut office = after_silver_had_two();
    office.arrives(50, "copper", None);
    office.ends(50);
    office.moved();
    office
}

/// The flood is next by its turns, and has to wait: its equals do not, and those of lower
/// priority wait with it.
#[test]
fn who_waits_for_kept_room_holds_up_its_own_class_and_lower_ones_alone() {
    let mut office = after_silver_had_two_and_copper_one();
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    office.moved();
    assert_eq!((office.desk.held(ClassId(1)), office.room), (4, 2));
    office.arrives(40, "tail", None);
    assert_eq!(office.moved(), []);
    office.arrives(30, "copper", None);
    assert_eq!(office.moved(), said(&[(30, "enters")]));
    assert_eq!((office.desk.held_in_all(), office.room), (5, 1));
}

/// Its own need is more than what is free: nobody else waits behind it for that.
#[test]
fn a_large_request_of_a_flood_holds_up_nobody_that_room_is_kept_for() {
    let mut office = after_silver_had_two_and_copper_one();
    office.memory = 100;
    office.observe(Some(0));
    (10..15).for_each(|who| office.arrives(who, "bronze", None));
    office.arrives_with(15, "bronze", None, InputSize::one(40));
    office.moved();
    assert_eq!(office.desk.held(ClassId(1)), 1, "75 of 100 are taken");
    office.arrives(30, "copper", None);
    assert_eq!(office.moved(), said(&[(30, "enters")]));
}

#[test]
fn a_tensor_waits_for_no_memory_that_is_kept() {
    let mut office = after_silver_had_two();
    office.memory = 100;
    office.observe(Some(0));
    (10..20).for_each(|who| office.arrives(who, "bronze", None));
    assert_eq!(office.moved().len(), 5, "one more place is free");
    (15..20).for_each(|who| office.leaves(who));
    office.observe(Some(90));
    let tensor = InputSize {
        all: 1_000,
        longest: 0,
        sequences: 1,
    };
    office.arrives_with(30, "bronze", None, tensor);
    assert_eq!(office.moved(), said(&[(30, "enters")]));
}

/// The same file read again changes nothing; other classes begin with nothing.
#[test]
fn a_reload_forgets_no_need_of_a_class_that_stays() {
    for (other, expected) in [(false, 6), (true, 8)] {
        let mut office = after_silver_had_two();
        office.reload(other);
        (10..20).for_each(|who| office.arrives(who, "bronze", None));
        assert_eq!(office.moved().len(), expected, "{other}");
    }
}

#[test]
fn a_class_that_holds_none_is_told_that_room_is_kept() {
    let mut office = after_silver_had_two();
    (10..16).for_each(|who| office.arrives(who, "lead", None));
    office.moved();
    office.arrives(16, "lead", None);
    assert_eq!(office.moved(), said(&[(16, "room_kept")]));
}

/// It is refused while a flood has everything, and gets room as the flood's requests end.
#[test]
fn room_that_a_class_which_holds_none_did_not_find_is_kept_for_the_next() {
    let mut office = Office::keeping_room(Mode::Enforce);
    (10..18).for_each(|who| office.arrives(who, "bronze", None));
    (20..24).for_each(|who| office.arrives(who, "bronze", None));
    assert_eq!(office.moved().len(), 8);
    office.arrives(30, "edge", None);
    assert_eq!(office.moved(), said(&[(30, "concurrency_limit")]));
    office.ends(10);
    assert_eq!(office.moved(), [], "the place that is free is kept");
    office.arrives(31, "edge", None);
    assert_eq!(office.moved(), said(&[(31, "enters")]));
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
    office.room = 3;
    (8..10).for_each(|who| office.arrives(who, "bronze", None));
    office.arrives(0, "silver", None);
    (11..14).for_each(|who| office.arrives(who, "bronze", None));
    // It finds no room three times, and each time it is its turn again before bronze's.
    for _ in 0..3 {
        office.returns(0, "silver");
        office.room = 1;
        office.settle();
    }
    office.moved();
    (1..4).for_each(|who| office.arrives(who, "silver", None));
    office.room = 3;
    office.settle();
    let order = said(&[(1, "enters"), (2, "enters"), (11, "enters")]);
    assert_eq!(office.moved(), order);
}
