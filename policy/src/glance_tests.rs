use std::sync::Arc;

use super::*;
use crate::memory::{Memory, Unit};
use crate::state::{DeviceSample, EngineSample, State};

fn glance(gpu: Reading) -> Glance {
    let gold = Attained {
        goodput: 12.34,
        attainment: Some(0.991),
        first_token_ms: Some([120.0, 480.0, 510.0]),
    };
    let idle = Attained {
        goodput: 0.0,
        attainment: None,
        first_token_ms: None,
    };
    Glance {
        gpu,
        concurrency: Concurrency {
            in_flight: 64,
            queued: 3,
            refused_per_second: 7.5,
        },
        quality: vec![("gold".to_owned(), gold), ("bronze".to_owned(), idle)],
    }
}

fn fresh() -> Reading {
    Reading::Fresh(Arc::new(State {
        at: Duration::ZERO,
        engine: EngineSample::default(),
        device: DeviceSample {
            utilisation: Some(0.87),
            sm_utilisation: Some(0.996),
            ..DeviceSample::default()
        },
        memory: Memory::new(42, 100, Unit::KvTokens),
        idle_ms: 0.0,
        steps_per_second: None,
    }))
}

#[test]
fn all_three_axes_are_in_sight() {
    let text = glance(fresh()).to_string();
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "gpu          busy 87%  sm 100%  bandwidth ?  memory 42%",
            "concurrency  in flight 64  queued 3  refused 7.5/s",
            "gold         goodput 12.3/s  attainment 99%  \
             first token p50 120 ms  p99 480 ms  p99.9 510 ms",
            "bronze       goodput 0.0/s  attainment ?  no answers",
        ]
    );
}

#[test]
fn a_state_that_is_no_longer_known_says_so() {
    let age = Duration::from_millis(4_200);
    let text = glance(Reading::Stale { age }).to_string();
    assert!(text.contains("state is 4.2 s old: the gate alone decides"));
    assert!(
        glance(Reading::Missing)
            .to_string()
            .contains("no state yet")
    );
}

#[test]
fn refusals_become_a_rate() {
    let at = Duration::from_secs;
    let mut rate = RefusalRate::new(at(10), 100);
    assert_eq!(rate.observe(at(12), 150), 25.0);
    assert_eq!(rate.observe(at(12), 170), 0.0, "no time has passed");
    assert_eq!(rate.observe(at(13), 20), 0.0, "the counter fell");
    assert_eq!(rate.observe(at(5), 90), 0.0, "the clock jumped back");
    assert_eq!(rate.observe(at(7), 92), 1.0);
}
