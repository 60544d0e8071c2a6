use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::decision::Decision;
use crate::file;
use crate::memory::{Memory, Unit};
use crate::state::{DeviceSample, EngineSample};

const SIZE: EngineSize = EngineSize {
    request_limit: 100,
    ranks: 1,
    batch: 100,
};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn judge() -> Judge {
    Judge::new(file::parse(file::DEFAULT).expect("the default file"), SIZE)
}

fn state(ms: u64, running: u64, used: u64, idle_ms: f64) -> Reading {
    Reading::Fresh(Arc::new(State {
        at: at(ms),
        engine: EngineSample {
            running: Some(running),
            ..EngineSample::default()
        },
        device: DeviceSample::default(),
        memory: Memory::new(used, 100_000, Unit::KvTokens),
        idle_ms,
        steps_per_second: Some(50.0),
    }))
}

fn class(judge: &Judge, name: &str) -> ClassId {
    judge.settings().classes.named(name).expect("a class")
}

fn request(judge: &Judge, name: &str, input: u64) -> Profile {
    judge.profile("m", class(judge, name), input, None)
}

fn decided(judge: &Judge, name: &str, input: u64) -> Decision {
    judge.decide(at(0), &request(judge, name, input), 0.0, 0)
}

fn enter(judge: &mut Judge, ms: u64, input: u64) -> Inside {
    let profile = request(judge, "gold", input);
    judge.enters(at(ms), profile, 0.0, 0)
}

#[test]
fn without_a_fresh_state_the_gate_alone_decides() {
    let mut judge = judge();
    assert_eq!(decided(&judge, "gold", 1_000_000), Decision::GateAlone);
    judge.observe(at(0), &state(0, 1, 0, 0.0));
    let never = Decision::Refuse(Reason::TooLarge);
    assert_eq!(decided(&judge, "gold", 1_000_000), never);
    judge.observe(at(5_000), &Reading::Stale { age: at(5_000) });
    assert_eq!(decided(&judge, "gold", 1_000_000), Decision::GateAlone);
}

#[test]
fn what_was_let_in_since_the_sample_is_memory_in_use() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 0, 0, 0.0));
    assert_eq!(decided(&judge, "gold", 60_000), Decision::Admit);
    let inside = enter(&mut judge, 1, 60_000);
    let wait = Decision::Wait(Reason::InsufficientMemory);
    assert_eq!(decided(&judge, "gold", 60_000), wait);
    judge.left(inside);
    assert_eq!(decided(&judge, "gold", 60_000), Decision::Admit);
}

#[test]
fn a_burst_into_a_cold_engine_meets_the_lowered_limit() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 0, 0, 5_000.0));
    assert_eq!(judge.limit(), 45, "0.75 × 0.6 of 100");
    let burst: Vec<_> = (0..45).map(|_| enter(&mut judge, 10, 10)).collect();
    assert_eq!(
        decided(&judge, "gold", 10),
        Decision::Wait(Reason::ColdStart)
    );
    judge.observe(at(2_100), &state(2_100, 45, 450, 0.0));
    assert_eq!(judge.limit(), 75, "warm again");
    assert_eq!(decided(&judge, "gold", 10), Decision::Admit);
    burst.into_iter().for_each(|inside| judge.left(inside));
    assert_eq!(judge.inside(), 0);
}

#[test]
fn nobody_overtakes_those_that_are_held() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 1, 0, 0.0));
    let behind = judge.decide(at(0), &request(&judge, "gold", 10), 0.0, 3);
    assert_eq!(behind, Decision::Wait(Reason::ConcurrencyLimit));
}

#[test]
fn it_learns_what_requests_take_and_refuses_what_would_be_late() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 1, 0, 0.0));
    for i in 0..500 {
        let input = 100 + 50 * (i % 10);
        let mut inside = enter(&mut judge, 1_000 * i, input);
        // 1 ms a token until the first, ten times that until the end.
        judge.first_token(at(1_000 * i + input), &mut inside);
        judge.first_token(at(1_000 * i + 999), &mut inside);
        judge.ended(at(1_000 * i + 10 * input), inside, Some(200));
    }
    // Not one that is put to the test.
    let _other = enter(&mut judge, 500_000, 0);
    assert_eq!(decided(&judge, "gold", 450), Decision::Admit);
    let late = Decision::Refuse(Reason::SloViolationRisk);
    assert_eq!(decided(&judge, "gold", 550), late);
    assert_eq!(
        decided(&judge, "bronze", 550),
        Decision::Admit,
        "it promises less"
    );
    assert_eq!(request(&judge, "gold", 450).need, 650);
    let bounded = judge.profile("m", class(&judge, "gold"), 450, Some(20));
    assert_eq!(bounded.need, 470);
    let _inside = enter(&mut judge, 600_000, 400);
    assert_eq!(decided(&judge, "gold", 200), late, "behind 400 more");
}

#[test]
fn an_estimate_that_refuses_everybody_is_put_to_the_test() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 1, 0, 0.0));
    let inside = enter(&mut judge, 0, 100);
    judge.ended(at(9_000), inside, Some(10));
    let decide = |judge: &Judge, ms| judge.decide(at(ms), &request(judge, "gold", 100), 0.0, 0);
    let late = Decision::Refuse(Reason::SloViolationRisk);
    assert_eq!(decide(&judge, 9_001), Decision::Admit, "nobody is inside");
    let other = enter(&mut judge, 8_500, 100);
    assert_eq!(
        decide(&judge, 9_499),
        late,
        "someone entered within a second"
    );
    assert_eq!(decide(&judge, 9_500), Decision::Admit, "a probe");
    let mut probe = enter(&mut judge, 9_500, 100);
    assert_eq!(decide(&judge, 9_600), late, "one at a time");
    judge.first_token(at(9_650), &mut probe);
    assert_eq!(
        decide(&judge, 9_660),
        Decision::Admit,
        "it kept its promise"
    );
    judge.left(probe);
    judge.left(other);
}

#[test]
fn a_probe_that_breaks_its_promise_proves_nothing() {
    let mut judge = judge();
    judge.observe(at(0), &state(0, 1, 0, 0.0));
    let slow = |judge: &mut Judge, ms| {
        let mut inside = enter(judge, ms, 100);
        judge.first_token(at(ms + 9_000), &mut inside);
        inside
    };
    let one = slow(&mut judge, 0);
    let probe = slow(&mut judge, 10_000);
    let decided = judge.decide(at(10_500), &request(&judge, "gold", 100), 0.0, 0);
    assert_eq!(decided, Decision::Refuse(Reason::SloViolationRisk));
    judge.left(one);
    judge.left(probe);
}

#[test]
fn names_that_clients_make_up_fill_no_memory() {
    let mut judge = judge();
    for i in 0..1_000 {
        let profile = judge.profile(&format!("m{i}"), ClassId(0), 10, None);
        let inside = judge.enters(at(i), profile, 0.0, 0);
        judge.ended(at(i + 1), inside, Some(1));
    }
    assert_eq!(judge.models.len(), MOST_MODELS + 1);
}

#[test]
fn a_rate_holds_without_a_state() {
    let text = "[[class]]\nname = \"a\"\nfirst_token_ms = 60\nrate = { per_second = 1, burst = 2 }";
    let mut judge = Judge::new(file::parse(text).expect("a file"), SIZE);
    let arrived: Vec<_> = (0..3).map(|_| judge.arrives(at(0), ClassId(0))).collect();
    assert_eq!(arrived, [Ok(()), Ok(()), Err(Reason::RateLimit)]);
    assert_eq!(judge.arrives(at(1_000), ClassId(0)), Ok(()));
}

proptest! {
    #[test]
    fn whatever_happens_all_is_given_back(
        events in prop::collection::vec((0_u8..4, 0_u64..5_000, 0_usize..8), 1..200),
    ) {
        let mut judge = judge();
        let mut inside = Vec::new();
        for (now, (event, size, which)) in events.into_iter().enumerate() {
            let now = at(20 * now as u64);
            judge.observe(now, &state(0, 1, size, 0.0));
            match (event, which < inside.len()) {
                (1, true) => judge.first_token(now, &mut inside[which]),
                (2, true) => judge.ended(now, inside.remove(which), Some(size)),
                (3, true) => judge.left(inside.remove(which)),
                _ => {
                    let profile = judge.profile("m", ClassId(which), size, None);
                    let _ = judge.decide(now, &profile, size as f64, which as u64);
                    inside.push(judge.enters(now, profile, size as f64, which as u64));
                }
            }
            prop_assert!((1..=75).contains(&judge.limit()));
        }
        inside.into_iter().for_each(|request| judge.left(request));
        prop_assert_eq!((judge.inside, judge.promised, judge.unfilled), (0, 0, 0));
    }
}
