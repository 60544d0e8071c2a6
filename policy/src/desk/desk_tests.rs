use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::file;
use crate::judge::Inside;
use crate::memory::{Memory, Unit};
use crate::published::Reading;
use crate::state::{DeviceSample, EngineSample, State};

const SIZE: EngineSize = EngineSize {
    request_limit: 8,
    batch: 8,
};

/// Gold goes before silver and bronze, which share 2 to 1; lead is held not at all.
const POLICY: &str = r#"
utilisation_target = 1.0
[fairness]
by = "requests"
[[class]]
name = "silver"
priority = 1
weight = 2
first_token_ms = 100000
queue_timeout_ms = 3000
[[class]]
name = "bronze"
priority = 1
first_token_ms = 100000
queue_timeout_ms = 2000
[[class]]
name = "gold"
priority = 2
first_token_ms = 100000
queue_timeout_ms = 1000
[[class]]
name = "lead"
first_token_ms = 100000
queue_timeout_ms = 0
"#;

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A desk before a gate that has room for so many.
struct Office {
    desk: Desk<(u64, Option<u32>)>,
    now: u64,
    room: u64,
    inside: BTreeMap<u64, Inside>,
    moved: Vec<(u64, String)>,
    places: BTreeMap<u64, Place>,
}

impl Office {
    fn new(mode: Mode) -> Self {
        let settings = file::parse(POLICY).unwrap();
        let mut office = Office {
            desk: Desk::new(at(0), settings, SIZE, mode),
            now: 0,
            room: 8,
            inside: BTreeMap::new(),
            moved: Vec::new(),
            places: BTreeMap::new(),
        };
        office.observe(Some(0));
        office
    }

    fn act<R>(
        &mut self,
        act: impl FnOnce(
            &mut Desk<(u64, Option<u32>)>,
            Duration,
            &mut dyn FnMut(&(u64, Option<u32>)) -> Entry<()>,
            &mut Moves<(u64, Option<u32>), ()>,
        ) -> R,
    ) -> R {
        let (mut moves, room) = (Vec::new(), &mut self.room);
        let mut gate = |(_, rank): &(u64, Option<u32>)| match (&room, rank) {
            // Rank 9 is always full.
            (_, Some(9)) => Entry::RankFull,
            (0, _) => Entry::Full,
            _ => {
                *room -= 1;
                Entry::In(())
            }
        };
        let result = act(&mut self.desk, at(self.now), &mut gate, &mut moves);
        for ((who, _), outcome) in moves {
            self.places.remove(&who);
            let what = match outcome {
                Outcome::Enters((), inside) => {
                    self.inside.insert(who, inside);
                    "enters".to_owned()
                }
                Outcome::Refused(reason) => reason.to_string(),
                Outcome::GateAlone(_) => "gate alone".to_owned(),
            };
            self.moved.push((who, what));
        }
        result
    }

    fn arrives(&mut self, who: u64, class: &str, rank: Option<u32>) {
        let id = self.desk.judge().settings().classes.named(class).unwrap();
        let profile = self.desk.judge().profile("m", id, 10, None);
        let place = self.act(|desk, now, mut gate, moves| {
            desk.arrives(now, profile, (who, rank), &mut gate, moves)
        });
        if let Some(place) = place {
            assert!(self.places.insert(who, place).is_none());
        }
    }

    /// What was let in is turned away.
    fn returns(&mut self, who: u64, class: &str) {
        let class = self.desk.judge().settings().classes.named(class).unwrap();
        let inside = self.inside.remove(&who).unwrap();
        let place = self.act(|desk, now, mut gate, moves| {
            desk.returns(now, inside, class, (who, None), &mut gate, moves)
        });
        if let Some(place) = place {
            assert!(self.places.insert(who, place).is_none());
        }
    }

    fn watches(&mut self, who: u64, class: &str, room: bool) {
        let id = self.desk.judge().settings().classes.named(class).unwrap();
        let profile = self.desk.judge().profile("m", id, 10, None);
        self.act(|desk, now, _, moves| desk.watches(now, profile, (who, None), room, moves));
    }

    fn settle(&mut self) {
        self.act(|desk, now, mut gate, moves| desk.settle(now, &mut gate, moves));
    }

    /// A state with this much memory in use, or none.
    fn observe(&mut self, used: Option<u64>) {
        let reading = used.map_or(Reading::Missing, |used| {
            Reading::Fresh(Arc::new(State {
                at: at(self.now),
                engine: EngineSample::default(),
                device: DeviceSample::default(),
                memory: Memory::new(used, 1_000, Unit::KvTokens),
                idle_ms: 0.0,
                steps_per_second: None,
            }))
        });
        self.act(|desk, now, mut gate, moves| {
            desk.observe(now, &reading);
            desk.decide_anew(now, &mut gate, moves);
        });
    }

    fn ends(&mut self, who: u64) {
        let inside = self.inside.remove(&who).unwrap();
        self.desk.ended(at(self.now), inside, Some(5));
        self.room += 1;
        self.settle();
    }

    fn moved(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.moved)
    }

    fn full(mode: Mode) -> Self {
        let mut office = Office::new(mode);
        (0..8).for_each(|who| office.arrives(who, "silver", None));
        assert_eq!(office.moved().len(), 8);
        office
    }
}

fn said(what: &[(u64, &str)]) -> Vec<(u64, String)> {
    what.iter()
        .map(|(who, what)| (*who, (*what).to_owned()))
        .collect()
}

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
