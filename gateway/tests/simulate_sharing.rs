//! Classes that compete, and a target that is looked for. All in virtual time.

mod tenants;

use std::time::Duration;

use tidegate_gateway::engine::batch::BatchConfig;
use tidegate_gateway::load::Mix;
use tidegate_gateway::simulate::{
    Pause, Report, Request, Retries, Setup, Slow, WayIn, Workload, simulate,
};
use tidegate_policy::class::ClassId;
use tidegate_policy::file;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

use tenants::{by_order_alone, policy, tenants, together};

/// Seconds of which requests count.
const UNTIL: u64 = 240;

fn run(policy: &Settings, until: u64, requests: &[Request]) -> Report {
    run_with(policy, until, requests, None)
}

fn run_with(
    policy: &Settings,
    until: u64,
    requests: &[Request],
    retries: Option<Retries>,
) -> Report {
    let setup = Setup {
        until: Duration::from_secs(until),
        retries,
        ..Setup::new(BatchConfig::default(), policy.clone())
    };
    let gate = tidegate::Settings::default();
    let way_in = WayIn::Policy(Box::new(policy.clone()), gate, Mode::Enforce);
    simulate(&setup, &way_in, requests)
}

/// Requests of one class. They go on after what is counted, so that nobody gets in because
/// it becomes quiet.
fn of_class(class: usize, rate: f64, seed: u64) -> Vec<Request> {
    tenants::of_class(class, rate, UNTIL + 60, seed)
}

fn p99(report: &Report, class: usize) -> f64 {
    let [_, p99, _] = report.classes[class].first_token_ms().expect("answers");
    p99
}

#[test]
fn while_both_are_backlogged_each_tenant_gets_its_weight() {
    for weight in [1, 3] {
        // Both ask for far more than there is, one ten times as much as the other.
        let requests = together(&[of_class(0, 30.0, 1), of_class(1, 300.0, 2)]);
        let report = run(&tenants(weight), UNTIL, &requests);
        let ended = |class: usize| report.classes[class].ended as f64;
        let share = ended(0) / (ended(0) + ended(1));
        let weighted = f64::from(weight) / f64::from(weight + 1);
        assert!(
            (share / weighted - 1.0).abs() < 0.05,
            "{weight}: {share:.3}"
        );
    }
}

/// The tenant alone on its share of an engine: each step takes as much longer, and the
/// cache is as much smaller.
fn alone_on_its_share(share: f64, weight: u32, until: u64, requests: &[Request]) -> Report {
    let whole = BatchConfig::default();
    let engine = BatchConfig {
        kv_blocks: (f64::from(whole.kv_blocks) * share) as u32,
        ..whole
    };
    let setup = Setup {
        until: Duration::from_secs(until),
        slow: Some(Slow {
            from: Duration::ZERO,
            until: Duration::MAX,
            times: 1.0 / share,
        }),
        ..Setup::new(engine, tenants(weight))
    };
    let gate = tidegate::Settings::default();
    let way_in = WayIn::Policy(Box::new(tenants(weight)), gate, Mode::Enforce);
    simulate(&setup, &way_in, requests)
}

/// What fair sharing promises beside a flood of ten times what a tenant asks for: its
/// share of the engine, whether it asks for all of that or for less. An engine of its own
/// is not promised, since a full batch is slower for everyone in it.
#[test]
fn beside_a_flood_a_tenant_waits_as_long_as_alone_on_its_share() {
    for (weight, rate) in [(1, 30.0), (3, 30.0), (1, 5.0), (1, 4.0), (1, 2.5), (1, 1.0)] {
        let share = f64::from(weight) / f64::from(weight + 1);
        // Of few requests the slowest hundredth is a matter of luck: more of those.
        let until = if rate < 5.0 { 4 * UNTIL } else { UNTIL };
        let own = tenants::of_class(0, rate, until + 60, 1);
        let flood = tenants::of_class(1, 10.0 * rate, until + 60, 2);
        let flooded = run(&tenants(weight), until, &together(&[own.clone(), flood]));
        let alone = alone_on_its_share(share, weight, until, &own);
        let idle = run(&tenants(weight), until, &own);
        let all = [&flooded, &alone, &idle];
        let [beside, on_share, on_all] = all.map(|report| p99(report, 0));
        let [got, had, most] = all.map(|report| report.classes[0].ended);
        eprintln!(
            "weight {weight}, {rate}/s: p99 of the first token {beside:.0} ms beside the flood, \
             {on_share:.0} ms alone on {share:.2} of the engine, {on_all:.0} ms alone on all of it; \
             answers {got}, {had} and {most}"
        );
        assert!(beside <= 1.5 * on_share, "{beside} {on_share}");
        let least = if rate < 5.0 { 1.0 } else { 0.92 };
        assert!(got as f64 >= least * had as f64, "{got} {had}");
    }
}

/// Order alone is not enough: who is next waits until others have ended. Kept room helps
/// who asks for little, credit who asks for nearly its share.
#[test]
fn it_is_kept_room_and_credit_that_shield_who_asks_for_less_than_its_share() {
    let order = by_order_alone(tenants(1));
    let both = tenants(1);
    let kept = Settings {
        credit: Duration::ZERO,
        ..both.clone()
    };
    let credit = Settings {
        keep_room: Duration::ZERO,
        ..both.clone()
    };
    for rate in [2.5, 4.0] {
        let mut worst = [0.0_f64; 4];
        let mut tokens = [0; 4];
        for seed in 1..4 {
            let own = of_class(0, rate, seed);
            let on_share = p99(&alone_on_its_share(0.5, 1, UNTIL, &own), 0);
            let flooded = together(&[own, of_class(1, 10.0 * rate, 100 + seed)]);
            for (at, policy) in [&order, &kept, &credit, &both].into_iter().enumerate() {
                let report = run(policy, UNTIL, &flooded);
                worst[at] = worst[at].max(p99(&report, 0) / on_share);
                tokens[at] += report.in_all().kept_tokens;
            }
        }
        let cost = tokens.map(|of| 100.0 * (1.0 - of as f64 / tokens[0] as f64));
        eprintln!(
            "{rate}/s: p99 beside the flood over alone on its share, at worst, by order alone, \
             with kept room, with credit, with both: {worst:.2?}; that costs {cost:.1?} % of all \
             tokens"
        );
        assert!(worst[3] <= 1.5, "{worst:?}");
        assert!(worst[3] < 0.9 * worst[1], "kept room alone: {worst:?}");
        assert!(worst[3] < 0.9 * worst[2], "credit alone: {worst:?}");
        assert!(worst[3] < 0.5 * worst[0], "{worst:?}");
        assert!(cost[3] < 10.0, "{cost:?}");
    }
}

/// The default classes, which are held for a tenth of a second at most: order alone has
/// next to nobody to choose from.
#[test]
fn with_the_default_classes_a_flood_gets_few_of_another_refused() {
    let requests = together(&[of_class(1, 2.5, 1), of_class(2, 40.0, 2)]);
    let default = policy(file::DEFAULT);
    let refused = [by_order_alone(default.clone()), default].map(|policy| {
        let report = run(&policy, UNTIL, &requests);
        let silver = &report.classes[1];
        silver.refused_in_all() as f64 / silver.arrived as f64
    });
    eprintln!(
        "silver beside a flood of bronze, refused by order alone and with kept room: {refused:.3?}"
    );
    assert!(refused[1] < 0.25 * refused[0], "{refused:?}");
}

/// What is kept stays empty while it is not needed: the worst for the flood is a tenant
/// that needs its share for a moment, again and again.
#[test]
fn what_kept_room_costs_at_most_is_a_share_that_is_seldom_used() {
    let burst = |at: u64| {
        let mut all = of_class(0, 400.0, at);
        all.truncate(40);
        let first = all[0].at;
        all.iter_mut()
            .for_each(|request| request.at = request.at - first + Duration::from_secs(at));
        all
    };
    let own: Vec<_> = (0..UNTIL).step_by(9).map(burst).collect();
    let flooded = together(&[together(&own), of_class(1, 50.0, 2)]);
    let [order, kept] = [by_order_alone(tenants(1)), tenants(1)].map(|policy| {
        let report = run(&policy, UNTIL, &flooded);
        let [p50, ..] = report.classes[0].first_token_ms().expect("answers");
        (p50, report.in_all().kept_tokens as f64)
    });
    let cost = 1.0 - kept.1 / order.1;
    eprintln!(
        "40 requests at once every 9 s: p50 {:.0} ms by order alone, {:.0} ms with kept room \
         and credit, which cost {:.1} % of all tokens",
        order.0,
        kept.0,
        100.0 * cost
    );
    assert!(kept.0 < 0.8 * order.0, "{order:?} {kept:?}");
    assert!(cost < 0.15, "{cost}");
}

/// What is left of the flood is a fuller engine: each step takes longer, for everyone
/// in its batch. In one queue with the flood the tenant would be refused as well.
#[test]
fn a_flood_takes_nothing_from_a_tenant_that_stays_within_its_share() {
    // Half of its share, and five times what there is.
    let quiet = of_class(0, 2.5, 1);
    let alone = run(&tenants(1), UNTIL, &quiet);
    let flooded = together(&[quiet, of_class(1, 25.0, 2)]);
    let flooded = run(&tenants(1), UNTIL, &flooded);
    let in_one_queue = together(&[of_class(1, 2.5, 1), of_class(1, 25.0, 2)]);
    let in_one_queue = run(&tenants(1), UNTIL, &in_one_queue);
    let refused = |report: &Report, class: usize| {
        let class = &report.classes[class];
        class.refused_in_all() as f64 / class.arrived as f64
    };
    let [before, after] = [&alone, &flooded].map(|report| p99(report, 0));
    let unfair = p99(&in_one_queue, 1);
    eprintln!(
        "p99 of the first token: alone {before:.0} ms, flooded {after:.0} ms; \
         in one queue {unfair:.0} ms, and {:.0} % are refused",
        100.0 * refused(&in_one_queue, 1)
    );
    assert_eq!(flooded.classes[0].ended, alone.classes[0].ended);
    assert_eq!(refused(&flooded, 0), 0.0);
    assert!(refused(&in_one_queue, 1) > 0.5);
    assert!(after < 0.4 * unfair, "{after} {unfair}");
}

#[test]
fn endless_traffic_of_a_high_priority_leaves_the_low_one_its_floor() {
    let text = |floor| {
        policy(&format!(
            "[tuner]\nenabled = false\n[fairness]\nfloor = {floor}\n\
             [[class]]\nname = \"high\"\npriority = 9\nfirst_token_ms = 60000\n\
             queue_share = 1.0\nqueue_timeout_ms = 2000\ncritical = true\n\
             [[class]]\nname = \"low\"\nfirst_token_ms = 60000\n\
             queue_share = 1.0\nqueue_timeout_ms = 30000\ncritical = true\n"
        ))
    };
    let requests = together(&[of_class(0, 60.0, 1), of_class(1, 5.0, 2)]);
    let share = |floor| {
        let report = run(&text(floor), UNTIL, &requests);
        let [high, low] = &report.classes[..] else {
            panic!("two classes");
        };
        low.ended as f64 / (low.ended + high.ended) as f64
    };
    assert_eq!(share(0.0), 0.0, "strict priorities starve");
    for floor in [0.01, 0.05] {
        let got = share(floor);
        assert!(got >= 0.9 * floor && got < 1.5 * floor, "{floor}: {got}");
    }
}

/// Clients that are refused come again, for half a minute: the storm after an overload.
/// How often a request comes to the door on average is the amplification.
#[test]
fn it_is_retry_after_that_calms_a_storm_of_retries() {
    let storm = |timeout_ms: u32, pause| {
        let policy = policy(&format!(
            "[[class]]\nname = \"a\"\nfirst_token_ms = 20000\nqueue_share = 1.0\n\
             queue_timeout_ms = {timeout_ms}\ncritical = true\n"
        ));
        let patience = Duration::from_secs(30);
        let retries = Retries { patience, pause };
        let report = run_with(&policy, 120, &of_class(0, 25.0, 3), Some(retries));
        let all = report.in_all();
        (all.asked as f64 / all.arrived as f64, all.goodput())
    };
    let soon = Pause::Fixed(Duration::from_millis(200));
    let at_once = storm(0, soon);
    let queued = storm(3_000, soon);
    let asked_to_wait = storm(3_000, Pause::RetryAfter);
    eprintln!(
        "times that a request comes, and goodput per second: refused at once {at_once:.1?}, \
         queued {queued:.1?}, queued and told when to come again {asked_to_wait:.1?}"
    );
    // More clients come again than may be held: a queue alone hardly helps.
    assert!(queued.0 < at_once.0, "{queued:?} {at_once:?}");
    assert!(
        asked_to_wait.0 < 0.1 * queued.0,
        "{asked_to_wait:?} {queued:?}"
    );
}

/// Short prompts, and a promise that a full batch breaks: kept up to about half of it.
fn to_tune(start: f64) -> Settings {
    policy(&format!(
        "utilisation_target = {start}\n\
         [[class]]\nname = \"a\"\nfirst_token_ms = 2000\nend_to_end_ms = 6000\n\
         critical = true\n"
    ))
}

fn answers(
    rate: f64,
    from: u64,
    until: u64,
    [prompt_tokens, output_tokens]: [u32; 2],
    burst: f64,
) -> Vec<Request> {
    let workload = Workload {
        mix: Mix {
            burst,
            output_tokens,
            prompt_tokens,
            ..Mix::default()
        },
        class_weights: Vec::new(),
        ..Workload::default()
    };
    let length = Duration::from_secs(until - from);
    let mut all = workload.at_rate(rate).generate(length, 4);
    for request in &mut all {
        request.at += Duration::from_secs(from);
    }
    all
}

fn target(start: f64, until: u64, requests: &[Request]) -> f64 {
    let report = run(&to_tune(start), until, requests);
    let all = report.in_all();
    let target = report.target.expect("a policy");
    eprintln!(
        "from {start} to {target}, attainment {:?}",
        all.attainment()
    );
    target
}

#[test]
fn the_target_that_is_found_does_not_depend_on_where_it_starts() {
    for burst in [1.0, 2.0] {
        let found = [0.3, 0.75, 1.0]
            .map(|start| target(start, 240, &answers(80.0, 0, 240, [100, 100], burst)));
        for target in found {
            assert!((0.35..=0.7).contains(&target), "{found:?}");
            assert!((target - found[1]).abs() <= 0.15, "{found:?}");
        }
    }
}

#[test]
fn the_target_follows_the_load_and_goes_back_when_there_is_little_to_do() {
    let heavy = answers(80.0, 0, 160, [100, 100], 1.0);
    // Answers of a quarter of the length, which a fuller batch does not make late.
    let light = answers(160.0, 160, 300, [40, 30], 1.0);
    let calm = answers(5.0, 300, 420, [40, 30], 1.0);
    let found = [
        target(0.75, 160, &heavy),
        target(0.75, 300, &together(&[heavy.clone(), light.clone()])),
        target(0.75, 420, &together(&[heavy, light, calm])),
    ];
    assert!(found[0] < 0.7, "{found:?}");
    assert!(found[1] > found[0] + 0.15, "{found:?}");
    assert_eq!(found[2], 0.75, "{found:?}");
}

/// Kept places are places that nobody else finds: the limit counts as reached.
#[test]
fn the_target_is_found_beside_room_that_is_kept() {
    let found = |keep_room_ms: u32| {
        let policy = policy(&format!(
            "utilisation_target = 0.3\n[fairness]\nkeep_room_ms = {keep_room_ms}\n\
             [[class]]\nname = \"quiet\"\nfirst_token_ms = 2000\nend_to_end_ms = 6000\n\
             critical = true\n\
             [[class]]\nname = \"flood\"\nfirst_token_ms = 2000\nend_to_end_ms = 6000\n\
             critical = true\n"
        ));
        let quiet = answers(5.0, 0, 240, [100, 100], 2.0);
        let mut flood = answers(75.0, 0, 240, [100, 100], 2.0);
        flood
            .iter_mut()
            .for_each(|request| request.class = ClassId(1));
        let report = run(&policy, 240, &together(&[quiet, flood]));
        report.target.expect("a policy")
    };
    let [kept, not_kept] = [30_000, 0].map(found);
    eprintln!("from 0.3 to {kept} with kept room, {not_kept} without");
    assert!(
        kept >= 0.5 && (kept - not_kept).abs() <= 0.15,
        "{kept} {not_kept}"
    );
}
