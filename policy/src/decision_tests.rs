use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::class::Slo;
use crate::memory::Unit;

fn gold() -> Class {
    Class {
        name: "gold".to_owned(),
        priority: 2,
        weight: 1.0,
        slo: Slo {
            first_token_ms: 1_000.0,
            end_to_end_ms: Some(10_000.0),
        },
        queue_share: 0.7,
        queue_timeout: Duration::from_millis(150),
        critical: true,
        rate: None,
    }
}

fn calm() -> Situation {
    Situation {
        memory: Memory::new(500, 1_000, Unit::KvTokens),
        need: 100,
        critical_from: 0.85,
        limit: None,
        waited_ms: 0.0,
        drain_ms: 0.0,
        expected: Expected {
            first_token_ms: 200.0,
            end_to_end_ms: 4_000.0,
        },
        filling_ms: None,
    }
}

fn decided(change: impl FnOnce(&mut Class, &mut Situation)) -> Decision {
    let (mut class, mut now) = (gold(), calm());
    change(&mut class, &mut now);
    decide(&class, &now)
}

#[test]
fn each_row_of_the_table() {
    use Decision::{Admit, Refuse, Wait};
    use Reason::{ColdStart, InsufficientMemory, SloViolationRisk};
    assert_eq!(decided(|_, _| ()), Admit);
    assert_eq!(
        decided(|_, now| now.waited_ms = 801.0),
        Refuse(SloViolationRisk)
    );
    assert_eq!(decided(|_, now| now.need = 501), Wait(InsufficientMemory));
    assert_eq!(
        decided(|_, now| now.limit = Some(ColdStart)),
        Wait(ColdStart)
    );
    assert_eq!(
        decided(|_, now| (now.need, now.drain_ms) = (501, 5_000.0)),
        Refuse(InsufficientMemory)
    );
    assert_eq!(
        decided(|_, now| (now.limit, now.drain_ms) = (Some(ColdStart), 5_000.0)),
        Refuse(SloViolationRisk)
    );
}

#[test]
fn the_share_is_of_queueing_and_the_deadline_is_whole() {
    // 650 of 700 ms for queueing, and 850 of 1000 in all.
    assert_eq!(decided(|_, now| now.drain_ms = 650.0), Decision::Admit);
    let over = Decision::Refuse(Reason::SloViolationRisk);
    assert_eq!(decided(|_, now| now.drain_ms = 701.0), over, "the share");
    let slow = |now: &mut Situation| now.expected.first_token_ms = 400.0;
    assert_eq!(
        decided(|_, now| {
            slow(now);
            now.drain_ms = 601.0
        }),
        over,
        "the deadline"
    );
    assert_eq!(
        decided(|_, now| now.expected.end_to_end_ms = 10_001.0),
        over,
        "the whole answer's deadline"
    );
    assert_eq!(
        decided(|class, now| {
            class.slo.end_to_end_ms = None;
            now.expected.end_to_end_ms = 10_001.0;
        }),
        Decision::Admit,
        "no such promise"
    );
}

#[test]
fn what_can_never_fit_does_not_wait() {
    let never = Decision::Refuse(Reason::TooLarge);
    assert_eq!(decided(|_, now| now.need = 1_001), never);
}

#[test]
fn the_critical_go_first_when_memory_is_short() {
    let full = |now: &mut Situation| now.memory = Memory::new(850, 1_000, Unit::KvTokens);
    assert_eq!(decided(|_, now| full(now)), Decision::Admit);
    let shed = decided(|class, now| {
        full(now);
        class.critical = false;
    });
    assert_eq!(shed, Decision::Refuse(Reason::NoncriticalShed));
}

#[test]
fn a_batch_with_room_is_filled_even_if_the_queue_is_tight() {
    let tight = |now: &mut Situation| now.drain_ms = 790.0;
    let filled = |now: &mut Situation| now.filling_ms = Some(10.0);
    let over = Decision::Refuse(Reason::SloViolationRisk);
    assert_eq!(decided(|_, now| tight(now)), over);
    let both = decided(|_, now| {
        tight(now);
        filled(now)
    });
    assert_eq!(both, Decision::Admit);
    let hopeless = decided(|_, now| {
        filled(now);
        now.waited_ms = 900.0
    });
    assert_eq!(hopeless, over, "bound to be late");
    let no_memory = decided(|_, now| {
        filled(now);
        now.need = 501
    });
    assert_eq!(no_memory, Decision::Wait(Reason::InsufficientMemory));
}

#[test]
fn memory_that_is_not_known_is_not_judged() {
    assert_eq!(
        decided(|_, now| (now.memory, now.need) = (None, u64::MAX)),
        Decision::Admit
    );
}

/// How good a decision is for the request.
fn grade(decision: Decision) -> u8 {
    match decision {
        Decision::Refuse(_) => 0,
        Decision::Wait(_) => 1,
        Decision::Admit | Decision::GateAlone => 2,
    }
}

fn situations() -> impl Strategy<Value = Situation> {
    let memory = (0_u64..1_200, 1_u64..1_000);
    let times = prop::array::uniform4(0.0..2_000.0_f64);
    let filling = prop::option::of(0.0..50.0_f64);
    (memory, 0_u64..1_200, times, filling, any::<bool>()).prop_map(
        |((used, total), need, times, filling_ms, limited)| Situation {
            memory: Memory::new(used, total, Unit::KvTokens),
            need,
            critical_from: 0.85,
            limit: limited.then_some(Reason::ConcurrencyLimit),
            waited_ms: times[0],
            drain_ms: times[1],
            expected: Expected {
                first_token_ms: times[2],
                end_to_end_ms: 5.0 * times[3],
            },
            filling_ms,
        },
    )
}

proptest! {
    #[test]
    fn worse_is_never_better(now in situations(), by in 0.0..500.0_f64, critical: bool) {
        let class = Class { critical, ..gold() };
        let before = grade(decide(&class, &now));
        let more = by as u64;
        let worse = [
            Situation { need: now.need + more, ..now },
            Situation { memory: now.memory.map(|m| m.at_least(m.used + more)), ..now },
            Situation { waited_ms: now.waited_ms + by, ..now },
            Situation { drain_ms: now.drain_ms + by, ..now },
            Situation { limit: now.limit.or(Some(Reason::ColdStart)), ..now },
            Situation {
                expected: Expected {
                    first_token_ms: now.expected.first_token_ms + by,
                    end_to_end_ms: now.expected.end_to_end_ms + by,
                },
                ..now
            },
        ];
        for situation in worse {
            prop_assert!(grade(decide(&class, &situation)) <= before, "{situation:?}");
        }
    }

    #[test]
    fn whoever_is_admitted_fits_and_has_the_time(now in situations(), critical: bool) {
        let class = Class { critical, ..gold() };
        if decide(&class, &now) == Decision::Admit {
            let memory = now.memory.expect("always known here");
            prop_assert!(memory.used + now.need <= memory.total);
            prop_assert!(now.limit.is_none());
            let least = now.waited_ms + now.filling_ms.unwrap_or(now.drain_ms);
            prop_assert!(least + now.expected.first_token_ms <= class.slo.first_token_ms);
        }
    }

    #[test]
    fn a_critical_class_is_treated_no_worse(now in situations()) {
        let other = Class { critical: false, ..gold() };
        prop_assert!(grade(decide(&other, &now)) <= grade(decide(&gold(), &now)));
    }
}
