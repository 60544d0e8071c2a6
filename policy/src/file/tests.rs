use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::class::Classes;
use crate::settings::{DEFAULT_CLASS, default_classes};

fn error(text: &str) -> String {
    parse(text).expect_err("refused").to_string()
}

#[test]
fn the_default_text_the_empty_file_and_the_defaults_are_the_same() {
    let classes = Classes::new(default_classes(), DEFAULT_CLASS).unwrap();
    let defaults = Settings::of(classes);
    assert_eq!(parse(DEFAULT).unwrap(), defaults);
    assert_eq!(parse("").unwrap(), defaults);
}

#[test]
fn what_the_default_text_only_mentions_is_accepted_too() {
    let all = DEFAULT
        .replace("# end_to_end_ms", "end_to_end_ms")
        .replace("# rate", "rate")
        .replace("# \"sk-", "\"sk-")
        .replace("# \"my-", "\"my-");
    let settings = parse(&all).unwrap();
    let classes = &settings.classes;
    let gold = &classes.all()[0];
    assert_eq!(gold.slo.end_to_end_ms, Some(20_000.0));
    assert_eq!(gold.rate.map(|rate| rate.burst.get()), Some(100));
    let class = |key, model| classes.get(classes.choose(key, None, model)).name.clone();
    assert_eq!(class(Some("sk-example"), "my-embedder"), "gold");
    assert_eq!(class(None, "my-embedder"), "bronze");
    assert_eq!(class(None, "other"), "silver");
}

#[test]
fn own_classes_replace_the_defaults() {
    let settings =
        parse("[[class]]\nname = \"edge\"\nfirst_token_ms = 60\nqueue_timeout_ms = 0").unwrap();
    let [edge] = settings.classes.all() else {
        panic!("one class: {settings:?}");
    };
    assert_eq!(edge.queue_timeout, Duration::ZERO);
    let left_out = (edge.priority, edge.weight, edge.queue_share, edge.critical);
    assert_eq!(left_out, (0, 1.0, 0.5, false));
    let chosen = settings.classes.choose(None, None, "any");
    assert_eq!(settings.classes.get(chosen).name, "edge");
}

#[test]
fn errors_name_line_key_and_what_is_accepted() {
    let class = "[[class]]\nname = \"a\"\nfirst_token_ms = 60\n";
    for (text, expected) in [
        (
            "\n[state]\nstale_after = 3".to_owned(),
            "line 3, stale_after: unknown field `stale_after`, expected one of \
             `sample_interval_ms`, `stale_after_ms`, `engine_preallocates`",
        ),
        (
            "[memory]\ncritical_from = \"high\"".to_owned(),
            "line 2, critical_from: invalid type: string \"high\", expected a number from 0 to 1",
        ),
        (
            "[batch]\nfill_below = -1".to_owned(),
            "line 2, fill_below: invalid value: integer `-1`, expected a number from 0 to 1",
        ),
        (
            "[cold_start]\nguard_ms = nan".to_owned(),
            "line 2, guard_ms: invalid value: floating point `NaN`, \
             expected milliseconds from 0 to 3600000 (an hour)",
        ),
        (
            "[state]\nengine_preallocates = 1".to_owned(),
            "line 2, engine_preallocates: invalid type: integer `1`, expected a boolean",
        ),
        (
            format!("{class}rate = {{ per_second = 5, burst = 0.5 }}"),
            "line 4, burst: invalid value: floating point `0.5`, \
             expected a whole number of requests from 1 to 1000000",
        ),
        (
            format!("{class}priority = 300"),
            "line 4, priority: invalid value: integer `300`, expected a whole number from 0 to 255",
        ),
        (
            "default_class = \"platinum\"".to_owned(),
            "line 1, default_class: there is no class \"platinum\"; \
             the classes are gold, silver, bronze",
        ),
        (
            "[api_keys]\nk1 = \"gold\"\nk2 = \"golden\"".to_owned(),
            "line 3, k2: there is no class \"golden\"; the classes are gold, silver, bronze",
        ),
        (
            format!("{class}{class}"),
            "line 4: two classes are named \"a\"",
        ),
        (
            "[[class]]\nname = \"a b\"\nfirst_token_ms = 60".to_owned(),
            "line 1: the class name \"a b\" is not accepted: \
             expected 1 to 64 letters, digits, - or _",
        ),
        (
            format!("{class}end_to_end_ms = 50"),
            "line 1: class a: end_to_end_ms is 50, expected at least first_token_ms, 60",
        ),
        (
            "[[class]]\nname = \"a\"".to_owned(),
            "line 1: missing field `first_token_ms`",
        ),
    ] {
        assert_eq!(error(&text), expected, "{text}");
    }
}

#[test]
fn text_that_is_no_toml_says_where() {
    for (text, line) in [("a b", 1), ("\n\n[state", 3), ("[state]\nx = [1,", 2)] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, Some(line), "{text}: {error}");
        assert!(!error.message.is_empty() && !error.message.contains('\n'));
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn a_damaged_file_is_answered_and_its_line_is_in_the_file(
        at in 0..DEFAULT.len(),
        with in "[ -~\n]{0,3}",
        cut in 0_usize..4,
    ) {
        let end = (at + cut).min(DEFAULT.len());
        let (Some(before), Some(after)) = (DEFAULT.get(..at), DEFAULT.get(end..)) else {
            return Ok(());
        };
        let text = format!("{before}{with}{after}");
        if let Err(error) = parse(&text) {
            let lines = 1 + text.matches('\n').count();
            prop_assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
        }
    }
}
