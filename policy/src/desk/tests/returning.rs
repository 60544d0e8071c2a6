//! Before many engines: who comes back, and who is only watched.

use super::office::{Office, at, said};
use crate::reason::Reason;
use crate::shadow::Mode;

#[test]
fn who_is_turned_away_is_next_again_and_has_the_rest_of_its_time() {
    let mut office = Office::new(Mode::Enforce);
    office.room = 1;
    office.arrives(0, "silver", None);
    office.now = 500;
    office.arrives(1, "silver", None);
    assert_eq!(office.moved(), said(&[(0, "enters")]));
    office.now = 1_000;
    office.returns(0, "silver");
    assert_eq!(office.moved(), []);
    assert_eq!(office.desk.next_timeout(), Some(at(3_000)), "of the first");
    office.room = 1;
    office.settle();
    assert_eq!(office.moved(), said(&[(0, "enters")]));
    office.now = 3_200;
    office.returns(0, "silver");
    assert_eq!(office.moved(), said(&[(0, "queue_timeout")]));
    office.room = 1;
    office.settle();
    assert_eq!(office.moved(), said(&[(1, "enters")]));
    let counts = &office.desk.decisions()[0];
    assert_eq!((counts.admitted, counts.returned), (3, 2));
    assert_eq!(office.desk.held_in_all(), 0);
}

/// Nobody else of its class waits, so that it alone says that the class does.
#[test]
fn who_is_turned_away_alone_goes_in_when_there_is_room() {
    let mut office = Office::new(Mode::Enforce);
    office.room = 1;
    office.arrives(0, "silver", None);
    office.returns(0, "silver");
    assert_eq!(office.moved(), said(&[(0, "enters")]));
    office.room = 1;
    office.settle();
    assert_eq!(office.moved(), said(&[(0, "enters")]));
}

#[test]
fn a_class_that_holds_none_holds_nobody_who_is_turned_away() {
    let mut office = Office::new(Mode::Enforce);
    office.room = 1;
    office.arrives(0, "lead", None);
    office.returns(0, "lead");
    let expected = said(&[(0, "enters"), (0, "concurrency_limit")]);
    assert_eq!(office.moved(), expected);
    assert_eq!(office.desk.judge().inside(), 0);
}

#[test]
fn watching_counts_what_would_be_and_lets_everyone_pass() {
    let mut office = Office::new(Mode::Observe);
    office.watches(0, "silver", true);
    office.watches(1, "silver", false);
    office.watches(2, "lead", false);
    let pass = said(&[(0, "gate alone"), (1, "gate alone"), (2, "gate alone")]);
    assert_eq!(office.moved(), pass);
    let silver = &office.desk.decisions()[0];
    assert_eq!(silver.admitted, 1);
    assert_eq!(silver.waited(Reason::ConcurrencyLimit), 1);
    let lead = &office.desk.decisions()[3];
    assert_eq!(lead.refused(Reason::ConcurrencyLimit), 1);
    assert_eq!(office.room, 8, "the gate was not asked");
}
