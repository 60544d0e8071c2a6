//! A desk to try things at, and what became of whom.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Desk, Entry, Moves, Outcome, Place};
use crate::file;
use crate::judge::{EngineSize, Inside};
use crate::memory::{Memory, Unit};
use crate::profile::InputSize;
use crate::published::Reading;
use crate::shadow::Mode;
use crate::state::{DeviceSample, EngineSample, State};

const SIZE: EngineSize = EngineSize {
    request_limit: 8,
    ranks: 1,
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

pub(super) fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A desk before a gate that has room for so many.
pub(super) struct Office {
    pub(super) desk: Desk<(u64, Option<u32>)>,
    pub(super) now: u64,
    pub(super) room: u64,
    /// Tokens that the engine has room for.
    pub(super) memory: u64,
    pub(super) inside: BTreeMap<u64, Inside>,
    pub(super) moved: Vec<(u64, String)>,
    pub(super) places: BTreeMap<u64, Place>,
}

impl Office {
    /// The past counts for nobody.
    pub(super) fn new(mode: Mode) -> Self {
        let none = "[fairness]\ncredit_ms = 0\nkeep_room_ms = 0";
        Office::by(&POLICY.replace("[fairness]", none), mode)
    }

    /// Room is kept, of memory too. Copper has bronze's priority and next to no weight, tail
    /// has the lowest.
    pub(super) fn keeping_room(mode: Mode) -> Self {
        Office::by(&Self::policy_that_keeps_room(), mode)
    }

    fn policy_that_keeps_room() -> String {
        let all = "[memory]\ncritical_from = 1\n[fairness]";
        let more = "[[class]]\nname = \"copper\"\npriority = 1\nweight = 0.1\n\
                    first_token_ms = 100000\nqueue_timeout_ms = 3000\n\
                    [[class]]\nname = \"edge\"\npriority = 1\nfirst_token_ms = 100000\n\
                    queue_timeout_ms = 0\n\
                    [[class]]\nname = \"tail\"\nfirst_token_ms = 100000\n\
                    queue_timeout_ms = 3000\n";
        POLICY.replace("[fairness]", all) + more
    }

    /// The policy is read again, the same or with one more class.
    pub(super) fn reload(&mut self, one_more: bool) {
        let mut policy = Self::policy_that_keeps_room();
        if one_more {
            policy += "[[class]]\nname = \"more\"\nfirst_token_ms = 100000\n";
        }
        self.desk.reload(file::parse(&policy).unwrap());
    }

    fn by(policy: &str, mode: Mode) -> Self {
        let settings = file::parse(policy).unwrap();
        let mut office = Office {
            desk: Desk::new(at(0), settings, SIZE, mode),
            now: 0,
            room: 8,
            memory: 1_000,
            inside: BTreeMap::new(),
            moved: Vec::new(),
            places: BTreeMap::new(),
        };
        office.observe(Some(0));
        office
    }

    pub(super) fn act<R>(
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

    pub(super) fn arrives(&mut self, who: u64, class: &str, rank: Option<u32>) {
        self.arrives_with(who, class, rank, InputSize::one(10));
    }

    pub(super) fn arrives_with(
        &mut self,
        who: u64,
        class: &str,
        rank: Option<u32>,
        input: InputSize,
    ) {
        let id = self.desk.judge().settings().classes.named(class).unwrap();
        let profile = self.desk.judge().profile_of("m", id, input, None);
        let place = self.act(|desk, now, mut gate, moves| {
            desk.arrives(now, profile, (who, rank), &mut gate, moves)
        });
        if let Some(place) = place {
            assert!(self.places.insert(who, place).is_none());
        }
    }

    /// The client of one that is held leaves.
    pub(super) fn leaves(&mut self, who: u64) {
        let place = self.places.remove(&who).unwrap();
        assert!(self.desk.leaves(at(self.now), place));
    }

    /// What was let in is turned away.
    pub(super) fn returns(&mut self, who: u64, class: &str) {
        let class = self.desk.judge().settings().classes.named(class).unwrap();
        let inside = self.inside.remove(&who).unwrap();
        let place = self.act(|desk, now, mut gate, moves| {
            desk.returns(now, inside, class, (who, None), &mut gate, moves)
        });
        if let Some(place) = place {
            assert!(self.places.insert(who, place).is_none());
        }
    }

    pub(super) fn watches(&mut self, who: u64, class: &str, room: bool) {
        let id = self.desk.judge().settings().classes.named(class).unwrap();
        let profile = self.desk.judge().profile("m", id, 10, None);
        self.act(|desk, now, _, moves| desk.watches(now, profile, (who, None), room, moves));
    }

    pub(super) fn settle(&mut self) {
        self.act(|desk, now, mut gate, moves| desk.settle(now, &mut gate, moves));
    }

    /// A state with this much memory in use, or none.
    pub(super) fn observe(&mut self, used: Option<u64>) {
        let reading = used.map_or(Reading::Missing, |used| {
            Reading::Fresh(Arc::new(State {
                at: at(self.now),
                engine: EngineSample::default(),
                device: DeviceSample::default(),
                memory: Memory::new(used, self.memory, Unit::KvTokens),
                idle_ms: 0.0,
                steps_per_second: None,
            }))
        });
        self.act(|desk, now, mut gate, moves| {
            desk.observe(now, &reading);
            desk.decide_anew(now, &mut gate, moves);
        });
    }

    pub(super) fn ends(&mut self, who: u64) {
        let inside = self.inside.remove(&who).unwrap();
        self.desk.ended(at(self.now), inside, Some(5));
        self.room += 1;
        self.settle();
    }

    pub(super) fn moved(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.moved)
    }

    pub(super) fn full(mode: Mode) -> Self {
        let mut office = Office::new(mode);
        (0..8).for_each(|who| office.arrives(who, "silver", None));
        assert_eq!(office.moved().len(), 8);
        office
    }
}

pub(super) fn said(what: &[(u64, &str)]) -> Vec<(u64, String)> {
    what.iter()
        .map(|(who, what)| (*who, (*what).to_owned()))
        .collect()
}
