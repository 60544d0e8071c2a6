//! Random and exhaustive scripts: the gate, the sequential gate and a naive
//! statement of the rules give the same answers and counts at every step.

mod ops;

use ops::{Op, Report, Script, Who, run};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use tidegate::Settings;

/// A limit that is left alone, or one from 0 (out of range for two of them) to 5.
fn limit() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![1 => Just(None), 4 => (0_u32..=5).prop_map(Some)]
}

fn moved() -> impl Strategy<Value = Settings> {
    (limit(), limit(), limit()).prop_map(|(r, w, q)| Settings {
        engine_request_limit: r,
        engine_request_waiting_limit: w,
        request_queue_limit: q,
    })
}

/// Small limits, so that scripts of a hundred steps reach all of them.
fn start() -> impl Strategy<Value = Settings> {
    (1_u32..=5, 1_u32..=5, 0_u32..=5).prop_map(|(r, w, q)| Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    })
}

/// Mostly the same ranks, so that most reports are usable.
fn report(ranks: u8) -> impl Strategy<Value = Op> {
    let ranks = prop_oneof![8 => Just(ranks), 1 => 0_u8..=10];
    let size = prop_oneof![Just(None), (0_u32..=5).prop_map(Some)];
    (ranks, size).prop_map(|(ranks, max_num_seqs)| {
        Op::Report(Report {
            ranks,
            max_num_seqs,
        })
    })
}

/// Any rank that is reported, none, or one that is not.
fn who(ranks: u8) -> impl Strategy<Value = Who> {
    (0..=ranks + 1).prop_map(Who)
}

fn op(ranks: u8) -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => who(ranks).prop_map(Op::TryAdmit),
        12 => who(ranks).prop_map(Op::Request),
        3 => who(ranks).prop_map(Op::EnterIfRoom),
        1 => who(ranks).prop_map(Op::GoneOnArrival),
        6 => any::<u8>().prop_map(Op::Take),
        3 => any::<u8>().prop_map(Op::Cancel),
        5 => any::<u8>().prop_map(Op::FirstToken),
        8 => any::<u8>().prop_map(Op::Release),
        1 => moved().prop_map(Op::SetLimits),
        1 => report(ranks),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    (1_u8..=8, start()).prop_flat_map(|(ranks, settings)| {
        let ops = prop::collection::vec(op(ranks), 1..150);
        let first = report(ranks);
        (ops, first, any::<bool>()).prop_map(move |(mut ops, first, report_first)| {
            if report_first {
                ops.insert(0, first);
            }
            Script { settings, ops }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(512)
    })]

    #[test]
    fn random_scripts_get_the_same_answers_everywhere(script in script()) {
        run::run(&script);
    }

    #[test]
    fn gates_without_explicit_limits_follow_their_reports(
        ops in (1_u8..=4).prop_flat_map(|ranks| prop::collection::vec(
            prop_oneof![1 => report(ranks), 9 => op(ranks)], 1..60)),
    ) {
        run::run(&Script { settings: Settings::default(), ops });
    }
}

/// Every script of this many steps over two ranks, from an alphabet that
/// reaches every transition.
#[test]
fn every_short_script_gets_the_same_answers_everywhere() {
    const STEPS: u32 = 5;
    let alphabet = [
        Op::Request(Who(0)),
        Op::Request(Who(1)),
        Op::Request(Who(2)),
        Op::TryAdmit(Who(1)),
        Op::Take(0),
        Op::Cancel(0),
        Op::FirstToken(0),
        Op::Release(0),
    ];
    let report = Op::Report(Report {
        ranks: 2,
        max_num_seqs: None,
    });
    for (r, w, q) in [(1, 1, 1), (2, 1, 0)] {
        let settings = Settings {
            engine_request_limit: Some(r),
            engine_request_waiting_limit: Some(w),
            request_queue_limit: Some(q),
        };
        for mut number in 0..alphabet.len().pow(STEPS) {
            let mut ops = vec![report];
            for _ in 0..STEPS {
                ops.push(alphabet[number % alphabet.len()]);
                number /= alphabet.len();
            }
            run::run(&Script { settings, ops });
        }
    }
}

/// The same for as long as one likes: ten million operations, or
/// `TIDEGATE_PROPERTY_OPS`. Run it optimised:
/// `cargo test --release -p tidegate --test properties -- --ignored --nocapture`.
#[test]
#[ignore = "minutes"]
fn many_random_scripts_get_the_same_answers_everywhere() {
    let wanted = match std::env::var("TIDEGATE_PROPERTY_OPS") {
        Ok(ops) => ops.parse().expect("TIDEGATE_PROPERTY_OPS is a number"),
        Err(_) => 10_000_000,
    };
    let mut runner = TestRunner::default();
    let (mut scripts, mut ops) = (0_u64, 0);
    while ops < wanted {
        let tree = script()
            .new_tree(&mut runner)
            .expect("scripts always exist");
        let script = Failing(tree.current());
        run::run(&script.0);
        scripts += 1;
        ops += script.0.ops.len();
    }
    println!("{ops} operations in {scripts} scripts: all three gates agree");
}

/// Shows the script that a panic came from.
struct Failing(Script);

impl Drop for Failing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:#?}", self.0);
        }
    }
}
