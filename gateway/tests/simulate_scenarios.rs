//! Situations that an admission policy exists for, each with its before and
//! after. All in virtual time.

use std::time::Duration;

use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::simulate::{Cold, Report, Request, Setup, Slow, WayIn, Workload, simulate};
use tidegate_policy::class::ClassId;
use tidegate_policy::file;
use tidegate_policy::limit::Factors;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

fn policy(text: &str) -> Settings {
    file::parse(text).expect("a policy file")
}

fn with(policy: &Settings) -> WayIn {
    let gate = tidegate::Settings::default();
    WayIn::Policy(Box::new(policy.clone()), gate, Mode::Enforce)
}

fn setup(policy: &Settings, from: u64, until: u64) -> Setup {
    Setup {
        from: Duration::from_secs(from),
        until: Duration::from_secs(until),
        ..Setup::new(BatchConfig::default(), policy.clone())
    }
}

/// `count` requests from `at` on, this far apart.
fn burst(at: Duration, count: u32, apart: Duration, tokens: [u32; 2]) -> Vec<Request> {
    let request = |i| Request {
        at: at + apart * i,
        class: ClassId(0),
        prompt_tokens: tokens[0],
        output_tokens: tokens[1],
    };
    (0..count).map(request).collect()
}

fn in_order(mut requests: Vec<Request>) -> Vec<Request> {
    requests.sort_by_key(|request| request.at);
    requests
}

fn p99(report: &Report) -> f64 {
    let [_, p99, _] = report.in_all().first_token_ms().expect("answers");
    p99
}

#[test]
fn one_huge_request_does_not_starve_the_small_ones() {
    let one = policy("[[class]]\nname = \"a\"\nfirst_token_ms = 1000\ncritical = true");
    let setup = setup(&one, 0, 60);
    let small = burst(Duration::ZERO, 600, Duration::from_millis(100), [300, 60]);
    let huge = burst(
        Duration::from_secs(20),
        6,
        Duration::from_secs(5),
        [60_000, 400],
    );
    let requests = in_order([small, huge].concat());
    let [before, after] =
        [WayIn::Open, with(&one)].map(|way_in| simulate(&setup, &way_in, &requests));
    let (before, after) = (before.in_all(), after.in_all());
    assert!((before.kept as f64) < 0.5 * before.arrived as f64);
    // The first huge one shows what such a request takes.
    assert!(after.kept as f64 > 0.93 * after.arrived as f64);
}

#[test]
fn at_85_percent_of_memory_the_critical_class_is_served_first() {
    let text = "[[class]]\nname = \"detection\"\nfirst_token_ms = 500\npriority = 1\ncritical = true\n\
                [[class]]\nname = \"pose\"\nfirst_token_ms = 500\n";
    let (aware, blind) = (policy(text), policy(&text.replace("critical = true", "")));
    let blind = Settings {
        critical_from: 1.0,
        ..blind
    };
    let workload = Workload {
        class_weights: vec![0.3, 0.7],
        ..Workload::default()
    };
    let setup = setup(&aware, 30, 150);
    let requests = workload.at_rate(25.0).generate(setup.until, 3);
    let kept = |way_in: &WayIn| {
        let report = simulate(&setup, way_in, &requests);
        let [critical, other] = &report.classes[..] else {
            panic!("two classes");
        };
        (critical.kept as f64 / critical.arrived as f64, other.kept)
    };
    let (before, after) = (kept(&with(&blind)), kept(&with(&aware)));
    assert!(after.0 > 0.8, "nearly all that is critical: {after:?}");
    assert!(after.0 > before.0 + 0.05, "{before:?} {after:?}");
    assert!(after.1 > 0, "and others where there is room");
}

#[test]
fn a_burst_into_a_cold_engine_swings_less() {
    let one = policy(
        "[[class]]\nname = \"a\"\nfirst_token_ms = 2000\ncritical = true\n\
         [cold_start]\ncold_ms = 200\n",
    );
    let without = Settings {
        cold_start: tidegate_policy::cold_start::Settings {
            idle_ms: f64::INFINITY,
            ..one.cold_start
        },
        ..one.clone()
    };
    let setup = Setup {
        cold: Some(Cold {
            after: Duration::from_secs(2),
            adds: Duration::from_millis(200),
        }),
        engine: BatchConfig {
            max_num_seqs: 64,
            ..BatchConfig::default()
        },
        ..setup(&one, 0, 100)
    };
    let bursts = (0..10).map(|i| {
        let apart = Duration::from_millis(2);
        burst(Duration::from_secs(1 + 10 * i), 48, apart, [400, 30])
    });
    let requests = in_order(bursts.flatten().collect());
    let seen = |way_in: &WayIn| simulate(&setup, way_in, &requests);
    let (before, after) = (seen(&with(&without)), seen(&with(&one)));
    // How much slower than usual the slow ones are.
    let swing = |report: &Report| {
        let [p50, p99, _] = report.in_all().first_token_ms().expect("answers");
        p99 - p50
    };
    assert!(swing(&after) < 0.75 * swing(&before));
    assert!(p99(&after) < 0.75 * p99(&before), "{after:?}");
    // The price: a lowered limit refuses what would have made the burst slow.
    let all = after.in_all();
    assert!(all.kept * 2 > all.arrived);
    assert_eq!(all.kept, all.ended);
}

#[test]
fn a_75_percent_target_has_a_shorter_tail_than_90() {
    let policy = policy(file::DEFAULT);
    let setup = setup(&policy, 30, 330);
    let requests = Workload::default().at_rate(20.0).generate(setup.until, 2);
    // The target acts as the limit in force. Without a queue, and with nobody
    // looking at memory, the tail is the engine's own.
    let p99_at = |target: f64| {
        let limit = Factors {
            target,
            cold: 1.0,
            headroom: 1.0,
        };
        let gate = tidegate::Settings {
            engine_request_limit: Some(limit.limit(80)),
            request_queue_limit: Some(0),
            ..tidegate::Settings::default()
        };
        let report = simulate(&setup, &WayIn::Gate(gate), &requests);
        p99(&report)
    };
    let (at_75, at_90) = (p99_at(0.75), p99_at(0.9));
    assert!(at_90 > 2.0 * at_75, "{at_75} ms, {at_90} ms");
}

#[test]
fn the_edge_holds_twice_its_load_for_five_seconds_without_a_queue() {
    let edge = policy(
        "[[class]]\nname = \"edge\"\nfirst_token_ms = 60\nqueue_timeout_ms = 0\ncritical = true\n",
    );
    // Counted are the five seconds at twice the load.
    let setup = setup(&edge, 15, 20);
    let mut workload = Workload {
        class_weights: vec![1.0],
        ..Workload::default()
    };
    // One step each, as a detection is, and arrivals without bursts of their own.
    workload.mix.burst = 1.0;
    workload.mix.prompt_tokens = 192;
    workload.mix.output_tokens = 1;
    let arrive = |seed| workload.clone().at_rate(80.0).generate(setup.until, seed);
    let extra = arrive(2).into_iter().filter(|r| r.at >= setup.from);
    let requests = in_order(arrive(1).into_iter().chain(extra).collect());
    let [before, after] = [WayIn::Open, with(&edge)].map(|way_in| {
        let report = simulate(&setup, &way_in, &requests);
        (report.in_all(), p99(&report))
    });
    assert!(before.1 > 120.0, "{} ms", before.1);
    assert!(after.1 <= 60.0, "{} ms", after.1);
    assert!(after.0.attainment().unwrap() >= 0.99);
    assert!(
        after.0.kept as f64 > 0.9 * after.0.arrived as f64,
        "{after:?}"
    );
    assert!(after.0.kept > before.0.kept);
}

/// Two minutes of traffic of which one minute is slow, and then a calm that the engine
/// serves with ease: how many of those that come in it are served.
#[test]
fn after_a_slow_spell_an_engine_that_has_little_to_do_soon_serves_again() {
    for promise in [
        "first_token_ms = 500",
        "first_token_ms = 500\nend_to_end_ms = 3000",
    ] {
        let one = policy(&format!(
            "[tuner]\nenabled = false\n[[class]]\nname = \"a\"\n{promise}\ncritical = true\n"
        ));
        let arrive = |from: u64, until: u64, apart: u64| {
            let count = u32::try_from(1_000 * (until - from) / apart).expect("few");
            let apart = Duration::from_millis(apart);
            burst(Duration::from_secs(from), count, apart, [400, 60])
        };
        // From the end of the spell on, one request in a quarter of a second.
        let requests = in_order([arrive(0, 120, 100), arrive(120, 180, 250)].concat());
        let served = |from, until, slow| {
            let setup = Setup {
                slow,
                ..setup(&one, from, until)
            };
            let all = simulate(&setup, &with(&one), &requests).in_all();
            all.kept as f64 / all.arrived as f64
        };
        let slow = Some(Slow {
            from: Duration::from_secs(60),
            until: Duration::from_secs(120),
            times: 40.0,
        });
        let told = [(60, 120), (120, 124), (124, 180)]
            .map(|(from, until)| [served(from, until, slow), served(from, until, None)]);
        eprintln!("served slow and not: {told:.2?}");
        assert!(told[0][0] < 0.3, "the spell is one: {told:?}");
        assert!(told[2][1] > 0.99, "otherwise all are served: {told:?}");
        assert!(
            told[2][0] > 0.97,
            "four seconds later they are again: {told:?}"
        );
    }
}
