use serde_json::json;

use super::*;

fn said(name: &str, port: u16, incarnation: u64, sequence: u64) -> Announcement {
    let url = format!("http://h:{port}");
    serde_json::from_value(json!({ "v": 1, "worker": name, "url": url, "ttl_ms": 1000,
        "incarnation": incarnation, "sequence": sequence }))
    .unwrap()
}

fn leave(mut said: Announcement) -> Announcement {
    said.leaving = true;
    said
}

struct Seen {
    directory: Directory<u32>,
    start: Instant,
}

impl Seen {
    fn new() -> Self {
        Self {
            directory: Directory::default(),
            start: Instant::now(),
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn takes(&mut self, said: &Announcement, millis: u64) -> Change {
        self.directory.take(said, self.at(millis))
    }

    fn joins(&mut self, said: Announcement, worker: u32, millis: u64) -> Option<u32> {
        assert_eq!(self.takes(&said, millis), Change::Joins);
        self.directory.join(said, worker, self.at(millis))
    }
}

#[test]
fn a_member_joins_stays_and_leaves_and_old_words_change_nothing() {
    let mut seen = Seen::new();
    assert_eq!(seen.joins(said("a", 1, 5, 1), 7, 0), None);
    assert_eq!(seen.takes(&said("a", 1, 5, 1), 0), Change::Nothing);
    assert_eq!(seen.takes(&said("a", 1, 5, 3), 0), Change::Stays);
    let replayed = Change::Dropped(Dropped::Replayed);
    assert_eq!(seen.takes(&said("a", 1, 5, 2), 0), replayed);
    assert_eq!(seen.takes(&leave(said("a", 1, 4, 99)), 0), replayed);
    assert_eq!(seen.takes(&said("a", 2, 4, 99), 0), replayed);
    assert_eq!(seen.takes(&leave(said("a", 1, 5, 4)), 0), Change::Leaves);
    let name = "a".parse().unwrap();
    assert_eq!(seen.directory.remove(&name), Some(7));
    assert_eq!(seen.takes(&leave(said("a", 1, 5, 4)), 0), Change::Nothing);
    assert_eq!(seen.directory.count(), (0, 0));
}

#[test]
fn a_new_start_is_followed_where_it_is() {
    let mut seen = Seen::new();
    seen.joins(said("a", 1, 5, 9), 7, 0);
    let name: WorkerName = "a".parse().unwrap();
    let turn = said("a", 1, 5, 50).turn;
    assert!(seen.directory.get(&name).unwrap().loads.take(turn));
    assert_eq!(seen.takes(&said("a", 1, 6, 1), 0), Change::Restarted);
    // Its words are counted anew.
    let turn = said("a", 1, 6, 2).turn;
    assert!(seen.directory.get(&name).unwrap().loads.take(turn));
    assert_eq!(seen.takes(&said("a", 2, 7, 1), 0), Change::Moves);
    assert_eq!(seen.directory.remove(&name), Some(7));
    assert_eq!(seen.joins(said("a", 2, 7, 1), 8, 0), None);
}

#[test]
fn who_is_silent_lapses_and_comes_back_by_any_word() {
    let mut seen = Seen::new();
    seen.joins(said("a", 1, 5, 1), 7, 0);
    seen.joins(said("b", 2, 5, 1), 8, 0);
    let name: WorkerName = "a".parse().unwrap();
    assert!(seen.directory.lapse(seen.at(1000)).is_empty());
    seen.directory.heard(&name, seen.at(900));
    assert_eq!(seen.directory.lapse(seen.at(1001)), ["b".parse().unwrap()]);
    assert_eq!(seen.directory.count(), (1, 1));
    assert!(seen.directory.lapse(seen.at(1002)).is_empty());
    assert_eq!(seen.directory.lapsed(|worker| *worker == 7).len(), 0);
    assert_eq!(seen.directory.lapsed(|worker| *worker == 8).len(), 1);
    assert_eq!(seen.takes(&said("b", 2, 5, 2), 1100), Change::Stays);
    assert_eq!(seen.directory.count(), (2, 0));
    // NATS was away for long: nobody is to blame.
    seen.directory.begin_anew(seen.at(60_000));
    assert!(seen.directory.lapse(seen.at(61_000)).is_empty());
    assert_eq!(seen.directory.lapse(seen.at(61_001)).len(), 2);
}

#[test]
fn a_place_has_one_member_until_it_is_silent() {
    let mut seen = Seen::new();
    seen.joins(said("a", 1, 5, 1), 7, 0);
    let taken = Change::Dropped(Dropped::TakenUrl);
    assert_eq!(seen.takes(&said("b", 1, 6, 1), 0), taken);
    seen.directory.lapse(seen.at(1001));
    assert_eq!(seen.joins(said("b", 1, 6, 1), 8, 1001), Some(7));
    assert_eq!(seen.directory.count(), (1, 0));
}

/// A start whose clock went back, where no bucket told it of the one before.
#[test]
fn an_earlier_number_is_believed_once_the_later_one_is_silent() {
    let mut seen = Seen::new();
    seen.joins(said("a", 1, 5, 9), 7, 0);
    assert_eq!(
        seen.takes(&said("a", 1, 4, 1), 0),
        Change::Dropped(Dropped::Replayed)
    );
    seen.directory.lapse(seen.at(1001));
    assert_eq!(seen.takes(&said("a", 1, 4, 2), 1001), Change::Restarted);
}

#[test]
fn names_of_dynamo_are_followed() {
    let mut seen = Seen::new();
    let named = |said: Announcement, id| Announcement {
        dynamo_worker_id: id,
        ..said
    };
    seen.joins(named(said("a", 1, 5, 1), Some(70)), 7, 0);
    seen.joins(named(said("b", 2, 5, 1), Some(70)), 8, 0);
    assert_eq!(seen.directory.by_dynamo(70).unwrap().worker, 7);
    assert!(seen.directory.by_dynamo(71).is_none());
    seen.takes(&named(said("a", 1, 5, 2), Some(71)), 0);
    assert_eq!(seen.directory.by_dynamo(71).unwrap().worker, 7);
    assert!(seen.directory.by_dynamo(70).is_none());
    seen.directory.remove(&"a".parse().unwrap());
    assert!(seen.directory.by_dynamo(71).is_none());
}

#[test]
fn members_are_bounded_in_number() {
    let mut seen = Seen::new();
    for n in 0..MOST_MEMBERS {
        let mut one = said(&format!("w{n}"), 1, 5, 1);
        one.url = format!("http://h{n}");
        seen.joins(one, 0, 0);
    }
    let one = said("more", 1, 5, 1);
    assert_eq!(seen.takes(&one, 0), Change::Dropped(Dropped::TooMany));
}
