use proptest::prelude::*;

use super::*;

const START: f64 = 0.75;

struct Bench {
    tuner: Tuner,
    now: Duration,
}

impl Bench {
    fn new() -> Self {
        Bench {
            tuner: Tuner::new(Settings::default(), START, Duration::ZERO),
            now: Duration::ZERO,
        }
    }

    /// One window in which this many of 1,000 answers are late.
    fn window(&mut self, late: u64, need: u64, reached: bool) -> f64 {
        for n in 0..1_000 {
            self.tuner.ended(need, n >= late);
        }
        for _ in 0..100 {
            self.now += Duration::from_millis(100);
            self.tuner.look(self.now, reached);
        }
        self.tuner.target()
    }

    /// So many windows before an engine that keeps promises up to this target.
    fn engine(&mut self, knee: f64, windows: u32, need: u64) -> Vec<f64> {
        let late = |target: f64| if target > knee + 1e-9 { 50 } else { 2 };
        (0..windows)
            .map(|_| self.window(late(self.tuner.target()), need, true))
            .collect()
    }
}

#[test]
fn it_climbs_to_the_knee_and_stays_within_a_step() {
    for knee in [0.9, 0.85, 0.75, 0.5, 0.3] {
        let mut bench = Bench::new();
        bench.engine(knee, 20, 100);
        let settled = bench.engine(knee, 100, 100);
        for target in &settled {
            assert!((knee - target).abs() <= STEP + 1e-9, "{knee}: {settled:?}");
        }
        // Beyond the knee for one window in seventeen at most.
        let beyond = settled.iter().filter(|target| **target > knee + 1e-9);
        assert!(beyond.count() <= 7, "{knee}: {settled:?}");
    }
}

#[test]
fn it_is_bounded_on_both_sides() {
    let mut bench = Bench::new();
    assert_eq!(bench.engine(2.0, 50, 100).pop(), Some(1.0));
    assert_eq!(bench.engine(0.0, 50, 100).pop(), Some(LOWEST));
}

#[test]
fn it_undoes_itself_when_there_is_nothing_to_do() {
    for knee in [1.0, 0.4] {
        let mut bench = Bench::new();
        bench.engine(knee, 30, 100);
        assert!((bench.tuner.target() - START).abs() > 0.1);
        for _ in 0..12 {
            bench.window(0, 100, false);
        }
        assert_eq!(bench.tuner.target(), START);
    }
}

#[test]
fn other_requests_end_the_waiting() {
    let mut bench = Bench::new();
    bench.engine(0.8, 40, 100);
    assert!(bench.tuner.patience > 4);
    // Half as long: the knee is higher, and found at once.
    let climbed = bench.engine(0.95, 4, 50);
    assert!(climbed[3] >= 0.95, "{climbed:?}");
}

#[test]
fn few_answers_say_nothing() {
    let mut bench = Bench::new();
    for _ in 0..FEWEST - 1 {
        bench.tuner.ended(100, false);
    }
    for _ in 0..1_000 {
        bench.now += Duration::from_millis(100);
        bench.tuner.look(bench.now, true);
    }
    assert_eq!(bench.tuner.target(), START);
    bench.tuner.ended(100, false);
    bench.tuner.look(bench.now, true);
    assert_eq!(bench.tuner.target(), 0.7);
}

#[test]
fn it_can_be_switched_off() {
    let mut bench = Bench::new();
    bench.tuner.settings.enabled = false;
    bench.engine(0.0, 10, 100);
    assert_eq!(bench.tuner.target(), START);
}

proptest! {
    #[test]
    fn whatever_happens_the_target_is_in_bounds_and_moves_a_step_at_a_time(
        windows in prop::collection::vec((0_u64..1_000, 0_u64..10_000, any::<bool>()), 1..40),
    ) {
        let mut bench = Bench::new();
        let mut before = START;
        for (late, need, reached) in windows {
            let target = bench.window(late, need, reached);
            prop_assert!((LOWEST..=1.0).contains(&target));
            prop_assert!((target - before).abs() <= STEP + 1e-9);
            if late > 10 {
                prop_assert!(target < before || target == LOWEST);
            }
            before = target;
        }
    }
}
