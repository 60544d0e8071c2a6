use proptest::prelude::*;

use super::*;

fn at(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// 20 ms and 0.1 ms a token, as prefill takes.
fn prefill_ms(input: u64) -> f64 {
    20.0 + 0.1 * input as f64
}

fn learned(requests: u64) -> ModelLatency {
    let mut model = ModelLatency::new(REBUILD, at(0));
    for i in 0..requests {
        let input = 100 + (i * 397) % 4000;
        model.first_token(at(1), input, prefill_ms(input));
        model.ended(at(1), input, Some(150), 10.0 * prefill_ms(input));
    }
    model
}

#[test]
fn what_is_not_known_is_expected_to_take_nothing() {
    let model = ModelLatency::new(REBUILD, at(0));
    assert_eq!(model.expected(1000, 1000), Expected::default());
    assert_eq!(model.output_tokens(), 0);
}

#[test]
fn before_the_first_table_the_line_speaks() {
    let model = learned(FIRST_TABLE - 1);
    let expected = model.expected(500, 1500).first_token_ms;
    // The first guesses were off, and count for a while.
    assert!(
        (1.0..1.25).contains(&(expected / prefill_ms(2000))),
        "{expected}"
    );
}

#[test]
fn with_a_table_the_upper_edge_is_expected() {
    let model = learned(1_500);
    // p50 is 225 ms here, p99.9 about 420: eight buckets of 8 %.
    for input in [100, 1000, 2500, 4000] {
        let expected = model.expected(0, input).first_token_ms;
        let exact = prefill_ms(input);
        assert!(
            exact <= expected && expected <= 1.1 * exact,
            "{input}: {expected}"
        );
    }
    let one_bucket = |a, b| model.expected(0, a) == model.expected(0, b);
    assert!(one_bucket(3_900, 3_990), "the edge, not the line");
    assert_eq!(model.output_tokens(), 150);
}

#[test]
fn scattered_latencies_are_expected_to_be_slow() {
    let mut model = ModelLatency::new(REBUILD, at(0));
    // 100 ms on average, and 50 more or less.
    (0..90)
        .for_each(|i| model.first_token(at(1), 1_000, 100.0 + 50.0 * f64::from(1 - 2 * (i % 2))));
    let expected = model.expected(0, 1_000).first_token_ms;
    // Two distances of 50 above the average; the first guess was further off.
    assert!((195.0..245.0).contains(&expected), "{expected}");
}

#[test]
fn a_slow_table_does_not_make_small_requests_look_late() {
    let mut model = ModelLatency::new(REBUILD, at(0));
    (0..FIRST_TABLE).for_each(|i| {
        let input = 4_000 + i % 1_000;
        model.first_token(at(1), input, prefill_ms(input));
    });
    let expected = model.expected(0, 100).first_token_ms;
    assert!(expected < 0.5 * prefill_ms(4_000), "{expected}");
}

#[test]
fn others_input_delays_the_first_token_and_not_the_rate_of_the_rest() {
    let model = learned(400);
    let (alone, behind) = (model.expected(0, 1000), model.expected(20_000, 1000));
    assert!(behind.first_token_ms > prefill_ms(20_000));
    assert_eq!(alone.end_to_end_ms, behind.end_to_end_ms);
}

#[test]
fn the_table_is_rebuilt_every_period_and_not_before() {
    let mut model = learned(400);
    let slow = |model: &mut ModelLatency, s| {
        (0..400).for_each(|_| model.first_token(at(s), 1000, 5_000.0));
    };
    let table = model.first_token.table;
    slow(&mut model, 299);
    assert_eq!(model.first_token.table, table);
    model.first_token(at(300), 1000, 5_000.0);
    let rebuilt = model.first_token.table.unwrap();
    let slowest = crate::buckets::Bucket::all().last().unwrap();
    assert!((rebuilt.upper(slowest) / 5_000.0 - 1.0).abs() < 0.02);
}

proptest! {
    #[test]
    fn more_input_is_never_expected_sooner(
        latencies in prop::collection::vec((0_u64..100_000, 0.0..1e5_f64), 0..150),
        a in 0_u64..1_000_000,
        b in 0_u64..1_000_000,
    ) {
        let mut model = ModelLatency::new(REBUILD, at(0));
        for (i, (input, ms)) in latencies.into_iter().enumerate() {
            model.first_token(at(i as u64 * 7), input, ms);
            model.ended(at(i as u64 * 7), input, Some(10), ms);
        }
        let (near, far) = (model.expected(0, a.min(b)), model.expected(0, a.max(b)));
        prop_assert!(near.first_token_ms <= far.first_token_ms * (1.0 + 1e-9));
        prop_assert!(near.end_to_end_ms <= far.end_to_end_ms * (1.0 + 1e-9));
        prop_assert!(near.first_token_ms >= 0.0);
    }
}

#[test]
fn answers_that_disprove_an_estimate_soon_outweigh_what_it_was_made_of() {
    let mut model = ModelLatency::new(REBUILD, Duration::ZERO);
    for _ in 0..1_000 {
        model.first_token(Duration::ZERO, 100, 5_000.0);
        model.ended(Duration::ZERO, 100, None, 50_000.0);
    }
    for _ in 0..5 {
        model.first_token_disproves(100, 50.0);
        model.first_token(Duration::ZERO, 100, 50.0);
        model.end_disproves(100, 500.0);
        model.ended(Duration::ZERO, 100, None, 500.0);
    }
    let expected = model.expected(0, 100);
    assert!(expected.first_token_ms < 500.0, "{expected:?}");
    assert!(expected.end_to_end_ms < 5_000.0, "{expected:?}");
}
