use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const REQUESTS: &str = "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT";
const OLDER_REQUESTS: &str = "DYN_ENGINE_REQUEST_LIMIT";
const WAITING: &str = "DYN_BACKEND_ADMISSION_ENGINE_REQUEST_WAITING_LIMIT";
const QUEUE: &str = "DYN_BACKEND_ADMISSION_REQUEST_QUEUE_LIMIT";
const OLDER_QUEUE: &str = "DYN_DYNAMO_REQUEST_QUEUE_LIMIT";
const NAMES: [&str; 5] = [REQUESTS, OLDER_REQUESTS, WAITING, QUEUE, OLDER_QUEUE];

type Environment = HashMap<&'static str, String>;

fn environment(pairs: &[(&'static str, &str)]) -> Environment {
    pairs
        .iter()
        .map(|&(name, value)| (name, value.to_owned()))
        .collect()
}

fn resolved(flags: Settings, environment: &Environment, report: Option<u32>) -> Resolved {
    resolve(&flags, |name| environment.get(name).cloned(), report).expect("valid flags")
}

fn values(resolved: &Resolved) -> [u32; 3] {
    resolved.limits.map(|limit| limit.value)
}

fn sources(resolved: &Resolved) -> [Source; 3] {
    resolved.limits.map(|limit| limit.source)
}

#[test]
fn nothing_set_and_nothing_reported_is_the_fallback() {
    let outcome = resolved(Settings::default(), &environment(&[]), None);
    assert_eq!(values(&outcome), [10_000, 10_000, 20_000]);
    assert_eq!(sources(&outcome), [Source::Fallback; 3]);
    assert!(outcome.warnings.is_empty());
    assert_eq!(outcome.settings, Settings::default());
}

#[test]
fn a_report_moves_the_defaults_and_only_those() {
    let flags = Settings {
        engine_request_limit: Some(64),
        ..Settings::default()
    };
    let outcome = resolved(flags, &environment(&[]), Some(256));
    assert_eq!(values(&outcome), [64, 256, 512]);
    assert_eq!(
        sources(&outcome),
        [Source::Flag, Source::Reported, Source::Reported]
    );
    assert_eq!(Setting::EngineRequestLimit.of(&outcome.settings), Some(64));
    assert_eq!(Setting::RequestQueueLimit.of(&outcome.settings), None);
}

#[test]
fn a_report_out_of_range_is_passed_over_whole() {
    for report in [0, u32::MAX] {
        let outcome = resolved(Settings::default(), &environment(&[]), Some(report));
        assert_eq!(sources(&outcome), [Source::Fallback; 3]);
        let [warning] = &outcome.warnings[..] else {
            panic!("one warning, got {outcome:?}")
        };
        assert!(
            warning
                .to_string()
                .contains(&format!("max_num_seqs={report}")),
            "{warning}"
        );
    }
}

#[test]
fn every_invalid_value_falls_to_the_next_source() {
    for bad in [
        "",
        "  ",
        "0",
        "-1",
        "many",
        "3.5",
        "4294967296",
        "4294967295",
    ] {
        let environment = environment(&[(REQUESTS, bad), (OLDER_REQUESTS, "9")]);
        let outcome = resolved(Settings::default(), &environment, Some(256));
        let limit = outcome.get(Setting::EngineRequestLimit);
        assert_eq!(
            (limit.value, limit.source),
            (9, Source::OlderName(OLDER_REQUESTS)),
            "{bad:?}"
        );
        let [warning] = &outcome.warnings[..] else {
            panic!("{bad:?}: {outcome:?}")
        };
        let text = warning.to_string();
        assert!(
            text.contains(REQUESTS) && text.contains(&format!("{bad:?}")),
            "{text}"
        );
        assert!(text.contains("an integer from 1 to "), "{text}");
    }
}

#[test]
fn a_queue_limit_of_zero_is_valid() {
    let outcome = resolved(Settings::default(), &environment(&[(QUEUE, "0")]), None);
    assert_eq!(Setting::RequestQueueLimit.of(&outcome.settings), Some(0));
    assert!(outcome.warnings.is_empty());
}

#[test]
fn two_invalid_names_warn_twice_and_leave_the_default() {
    let environment = environment(&[(QUEUE, "-1"), (OLDER_QUEUE, "none")]);
    let outcome = resolved(Settings::default(), &environment, Some(8));
    assert_eq!(outcome.get(Setting::RequestQueueLimit).value, 16);
    assert_eq!(outcome.warnings.len(), 2);
}

#[test]
fn the_older_request_name_never_feeds_the_waiting_limit() {
    let outcome = resolved(
        Settings::default(),
        &environment(&[(OLDER_REQUESTS, "3")]),
        None,
    );
    assert_eq!(values(&outcome), [3, 10_000, 20_000]);
}

#[test]
fn a_long_or_strange_value_stays_on_one_short_line() {
    let strange = format!("a\nb{}", "x".repeat(10_000));
    let outcome = resolved(
        Settings::default(),
        &environment(&[(WAITING, &strange)]),
        None,
    );
    let text = outcome.warnings[0].to_string();
    assert!(text.len() < 300 && !text.contains('\n'), "{text}");
}

#[test]
fn a_flag_out_of_range_is_an_error_that_names_the_range() {
    let flags = Settings {
        engine_request_waiting_limit: Some(0),
        ..Settings::default()
    };
    let error = resolve(&flags, |_| None, None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("waiting limit is an integer from 1 to "),
        "{error}"
    );
}

/// Values as people write them: valid ones, near misses, and any text.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0_u32..3000).prop_map(|n| n.to_string()),
        2 => ("[ \t]{0,2}", 0_u32..3000, "[ \t\n]{0,2}").prop_map(|(a, n, b)| format!("{a}{n}{b}")),
        1 => any::<i64>().prop_map(|n| n.to_string()),
        2 => any::<String>(),
    ]
}

fn environments() -> impl Strategy<Value = Environment> {
    prop::collection::hash_map(prop::sample::select(&NAMES[..]), value(), 0..=5)
}

fn flag(setting: Setting) -> impl Strategy<Value = Option<u32>> {
    prop::option::of(setting.range())
}

fn flags() -> impl Strategy<Value = Settings> {
    let [a, b, c] = Setting::ALL.map(flag);
    (a, b, c).prop_map(
        |(engine_request_limit, engine_request_waiting_limit, request_queue_limit)| Settings {
            engine_request_limit,
            engine_request_waiting_limit,
            request_queue_limit,
        },
    )
}

/// Reports that are usable whatever is set.
fn reports() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(Setting::EngineRequestLimit.range())
}

/// Precedence written down a second way: all candidates, then the first that counts.
fn plainly(
    setting: Setting,
    flags: &Settings,
    environment: &Environment,
    report: Option<u32>,
) -> u32 {
    let read = |name| {
        environment
            .get(name)
            .and_then(|text| setting.parse(text).ok())
    };
    [
        setting.of(flags),
        read(setting.environment()),
        setting.older_name().and_then(read),
        report.map(|seqs| {
            if setting == Setting::RequestQueueLimit {
                2 * seqs
            } else {
                seqs
            }
        }),
        Some(setting.fallback()),
    ]
    .into_iter()
    .flatten()
    .next()
    .expect("the fallback is always there")
}

proptest! {
    #[test]
    fn precedence_holds(flags in flags(), environment in environments(), report in reports()) {
        let outcome = resolved(flags, &environment, report);
        for setting in Setting::ALL {
            let expected = plainly(setting, &flags, &environment, report);
            prop_assert_eq!(outcome.get(setting).value, expected);
            prop_assert_eq!(outcome.get(setting).setting, setting);
        }
    }

    #[test]
    fn a_shadowed_name_is_not_read(flags in flags(), environment in environments()) {
        let read = RefCell::new(Vec::new());
        let lookup = |name: &'static str| {
            read.borrow_mut().push(name);
            environment.get(name).cloned()
        };
        let outcome = resolve(&flags, lookup, None).expect("valid flags");
        for setting in Setting::ALL {
            let was_read = |name: &str| read.borrow().iter().filter(|n| **n == name).count();
            let flagged = setting.of(&flags).is_some();
            prop_assert_eq!(was_read(setting.environment()), usize::from(!flagged));
            if let Some(older) = setting.older_name() {
                let newer_valid = environment.get(setting.environment())
                    .is_some_and(|text| setting.parse(text).is_ok());
                prop_assert_eq!(was_read(older), usize::from(!flagged && !newer_valid));
            }
        }
        for warning in &outcome.warnings {
            let Warning::Environment { name, value, .. } = warning else { panic!("no report was given") };
            prop_assert!(read.borrow().contains(name));
            prop_assert_eq!(Some(value), environment.get(name));
        }
    }

    #[test]
    fn whitespace_around_a_value_changes_nothing(n in any::<u32>(), before in "[ \t\r\n]{0,4}", after in "[ \t\r\n]{0,4}") {
        for name in NAMES {
            let bare = resolved(Settings::default(), &environment(&[(name, &n.to_string())]), None);
            let padded = resolved(Settings::default(), &environment(&[(name, &format!("{before}{n}{after}"))]), None);
            prop_assert_eq!(bare.limits, padded.limits);
        }
    }

    #[test]
    fn any_text_anywhere_is_answered(texts in prop::array::uniform5(any::<String>()), report in any::<Option<u32>>()) {
        let environment: Environment = NAMES.into_iter().zip(texts).collect();
        let outcome = resolved(Settings::default(), &environment, report);
        for limit in outcome.limits {
            prop_assert!(limit.setting.range().contains(&limit.value));
        }
        for warning in &outcome.warnings {
            prop_assert!(!warning.to_string().is_empty());
        }
    }

    #[test]
    fn settings_are_independent(
        flags in flags(), environment in environments(), report in reports(),
        touched in prop::sample::select(&Setting::ALL[..]), flag_value in any::<Option<u32>>(), text in value(),
    ) {
        let before = resolved(flags, &environment, report);
        let mut changed_flags = flags;
        let flag_value = flag_value.and_then(|v| touched.check(v).ok());
        *touched.of_mut(&mut changed_flags) = flag_value;
        let mut changed = environment.clone();
        changed.insert(touched.environment(), text.clone());
        if let Some(older) = touched.older_name() {
            changed.insert(older, text);
        }
        let after = resolved(changed_flags, &changed, report);
        for setting in Setting::ALL.into_iter().filter(|s| *s != touched) {
            prop_assert_eq!(before.get(setting), after.get(setting));
        }
    }

    #[test]
    fn resolving_again_changes_nothing(flags in flags(), environment in environments(), report in reports()) {
        let once = resolved(flags, &environment, report);
        prop_assert_eq!(&once, &resolved(flags, &environment, report));
        prop_assert_eq!(values(&once), values(&resolved(once.settings, &Environment::new(), report)));
    }
}
