//! Shadow mode: decide and count, refuse nothing.
//!
//! In [`Mode::Observe`] every decision is made and counted as it would be, and
//! then left to the gate alone, so that a policy can be watched on live traffic
//! before it is trusted. The counts are the same in both modes: what would be
//! refused is what was counted as refused.

use std::collections::BTreeMap;

use crate::class::{Class, ClassId, Classes};
use crate::decision::Decision;
use crate::reason::Reason;

/// Whether decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    #[default]
    Enforce,
    /// They are counted, and everything is left to the gate.
    Observe,
}

impl Mode {
    /// What is carried out of a decision.
    #[must_use]
    pub fn carried_out(self, decision: Decision) -> Decision {
        match self {
            Mode::Enforce => decision,
            Mode::Observe => Decision::GateAlone,
        }
    }
}

/// Decisions of one class. Each only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Admitted.
    pub admitted: u64,
    /// Left to the gate for want of a fresh state.
    pub gate_alone: u64,
    /// Left by its client while it was held.
    pub left: u64,
    /// Admitted, turned away behind the gate, and so held once more.
    pub returned: u64,
    waited: [u64; Reason::ALL.len()],
    refused: [u64; Reason::ALL.len()],
}

impl Counts {
    /// Held, for this reason at first.
    #[must_use]
    pub fn waited(&self, reason: Reason) -> u64 {
        self.waited[reason.index()]
    }

    /// Refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason.index()]
    }

    /// Refused for any reason.
    #[must_use]
    pub fn refused_in_all(&self) -> u64 {
        self.refused.iter().sum()
    }
}

/// Counts decisions by class.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    classes: Vec<Counts>,
    gone: BTreeMap<String, Counts>,
}

impl Tally {
    /// Counts for this many classes, all 0.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Tally {
            classes: vec![Counts::default(); classes],
            gone: BTreeMap::new(),
        }
    }

    /// Counts a decision.
    pub fn count(&mut self, class: ClassId, decision: Decision) {
        if let Some(counts) = self.classes.get_mut(class.0) {
            *match decision {
                Decision::Admit => &mut counts.admitted,
                Decision::GateAlone => &mut counts.gate_alone,
                Decision::Wait(reason) => &mut counts.waited[reason.index()],
                Decision::Refuse(reason) => &mut counts.refused[reason.index()],
            } += 1;
        }
    }

    /// Counts a client that left while its request was held.
    pub fn left(&mut self, class: ClassId) {
        if let Some(counts) = self.classes.get_mut(class.0) {
            counts.left += 1;
        }
    }

    /// Counts one that was admitted and comes back.
    pub fn returned(&mut self, class: ClassId) {
        if let Some(counts) = self.classes.get_mut(class.0) {
            counts.returned += 1;
        }
    }

    /// Counts by other classes from now on. What was counted stays under its name, which
    /// may come back.
    pub fn reclass(&mut self, old: &Classes, new: &Classes) {
        let names = old.all().iter().map(|class| class.name.clone());
        self.gone.extend(names.zip(self.classes.drain(..)));
        let of = |class: &Class| self.gone.remove(&class.name).unwrap_or_default();
        self.classes = new.all().iter().map(of).collect();
    }

    /// What was counted for classes that there are no more, by name.
    #[must_use]
    pub fn gone(&self) -> &BTreeMap<String, Counts> {
        &self.gone
    }

    /// The counts of each class, in the classes' order.
    #[must_use]
    pub fn classes(&self) -> &[Counts] {
        &self.classes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decisions() -> impl Strategy<Value = Decision> {
        let reason = prop::sample::select(Reason::ALL.to_vec());
        prop_oneof![
            Just(Decision::Admit),
            Just(Decision::GateAlone),
            reason.clone().prop_map(Decision::Wait),
            reason.prop_map(Decision::Refuse),
        ]
    }

    proptest! {
        #[test]
        fn observing_refuses_nothing_and_what_is_counted_is_kept(
            all in prop::collection::vec((0_usize..3, decisions()), 0..60),
        ) {
            let mut tally = Tally::new(3);
            for &(class, decision) in &all {
                tally.count(ClassId(class), decision);
                prop_assert_eq!(Mode::Enforce.carried_out(decision), decision);
                prop_assert_eq!(Mode::Observe.carried_out(decision), Decision::GateAlone);
            }
            let refused: u64 = tally.classes().iter().map(Counts::refused_in_all).sum();
            let expected = all.iter().filter(|(_, d)| matches!(d, Decision::Refuse(_)));
            let expected = expected.count() as u64;
            prop_assert_eq!(refused, expected);
            let counted = tally.classes().to_vec();
            let named = |names: &[&str]| {
                let class = |name: &&str| Class {
                    name: (*name).to_owned(),
                    ..crate::class::tests::placed(0, 1.0)
                };
                Classes::new(names.iter().map(class).collect(), names[0]).unwrap()
            };
            let (all, fewer) = (named(&["a", "b", "c"]), named(&["d", "b"]));
            tally.reclass(&all, &fewer);
            prop_assert_eq!(tally.classes(), &[Counts::default(), counted[1].clone()]);
            prop_assert_eq!(tally.gone().get("c"), Some(&counted[2]));
            tally.reclass(&fewer, &all);
            prop_assert_eq!(tally.classes(), &counted[..]);
        }
    }

    #[test]
    fn each_reason_has_its_counter() {
        let mut tally = Tally::new(1);
        for reason in Reason::ALL {
            tally.count(ClassId(0), Decision::Refuse(reason));
            tally.count(ClassId(0), Decision::Wait(reason));
        }
        tally.count(ClassId(9), Decision::Admit);
        let counts = &tally.classes()[0];
        for reason in Reason::ALL {
            assert_eq!((counts.refused(reason), counts.waited(reason)), (1, 1));
        }
        let all = Reason::ALL.len() as u64;
        assert_eq!((counts.admitted, counts.refused_in_all()), (0, all));
    }
}
