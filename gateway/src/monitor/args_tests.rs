use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    thresholds: ThresholdArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
}

type Variables<'a> = &'a [(&'a str, &'a str)];

fn parse(flags: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(["frontend"].iter().chain(flags))
}

fn resolved(flags: &[&str], variables: Variables) -> Result<Resolved, MonitorArgsError> {
    let cli = parse(flags).expect("valid flags");
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    resolve(&cli.thresholds, &cli.monitor, environment)
}

fn thresholds(flags: &[&str], variables: Variables) -> Thresholds {
    resolved(flags, variables).unwrap().settings.thresholds
}

#[test]
fn nothing_is_set_by_default() {
    let resolved = resolved(&[], &[]).unwrap();
    assert_eq!(resolved.settings, MonitorSettings::default());
    assert!(resolved.warnings.is_empty());
}

#[test]
fn each_threshold_is_set_alone() {
    let blocks = thresholds(&["--active-decode-blocks-threshold", "0.85"], &[]);
    assert_eq!(
        blocks,
        Thresholds {
            active_decode_blocks: Some(0.85),
            ..Thresholds::default()
        }
    );
    let tokens = thresholds(&[], &[("DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD", " 10000 ")]);
    assert_eq!(
        tokens,
        Thresholds {
            active_prefill_tokens: Some(10_000),
            ..Thresholds::default()
        }
    );
    let frac = thresholds(&["--active-prefill-tokens-threshold-frac=2.5"], &[]);
    assert_eq!(
        frac,
        Thresholds {
            active_prefill_tokens_frac: Some(2.5),
            ..Thresholds::default()
        }
    );
}

#[test]
fn a_flag_goes_before_its_variable() {
    let variable = ("DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD", "0.5");
    let flag = "--active-decode-blocks-threshold";
    let share = |flags: &[&str]| thresholds(flags, &[variable]).active_decode_blocks;
    assert_eq!(share(&[]), Some(0.5));
    assert_eq!(share(&[flag, "0.9"]), Some(0.9));
    assert_eq!(share(&[flag, "None"]), None, "none is an answer, too");
    // A variable behind a flag is not even read.
    let bad = ("DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD", "x");
    assert!(resolved(&[flag, "0.9"], &[bad]).is_ok());
}

#[test]
fn flags_out_of_range_end_with_code_2_and_the_range() {
    for (flag, value, said) in [
        (
            "--active-decode-blocks-threshold",
            "1.5",
            "between 0.0 and 1.0",
        ),
        (
            "--active-decode-blocks-threshold",
            "-0.1",
            "between 0.0 and 1.0",
        ),
        (
            "--active-decode-blocks-threshold",
            "nan",
            "between 0.0 and 1.0",
        ),
        (
            "--active-prefill-tokens-threshold",
            "-1",
            "an integer from 0",
        ),
        (
            "--active-prefill-tokens-threshold",
            "0.5",
            "an integer from 0",
        ),
        (
            "--active-prefill-tokens-threshold-frac",
            "inf",
            "a finite value",
        ),
        (
            "--active-prefill-tokens-threshold-frac",
            "-1",
            "a finite value",
        ),
        ("--load-ttl", "0", "seconds above 0"),
        ("--scrape-interval", "-1", "seconds above 0"),
        ("--kv-cache-block-size", "0", "1..=1048576"),
        ("--kv-total-blocks", "0", "1..=9007199254740992"),
        ("--max-num-batched-tokens", "x", "invalid digit"),
    ] {
        let error = parse(&[flag, value]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_variable_out_of_range_is_named() {
    for threshold in Threshold::ALL {
        let name = threshold.environment();
        let error = resolved(&[], &[(name, "lots")]).unwrap_err().to_string();
        assert!(
            error.starts_with(name) && error.contains(threshold.range()),
            "{error}"
        );
        assert_eq!(thresholds(&[], &[(name, " ")]), Thresholds::default());
        assert_eq!(thresholds(&[], &[(name, "none")]), Thresholds::default());
    }
}

#[test]
fn the_former_switch_does_nothing_and_says_what_to_set() {
    for (flags, variables) in [
        (vec!["--admission-control", "token-capacity"], vec![]),
        (vec!["--admission-control"], vec![]),
        (vec![], vec![("DYN_ADMISSION_CONTROL", "token-capacity")]),
    ] {
        let resolved = resolved(&flags, &variables).unwrap();
        assert_eq!(resolved.settings, MonitorSettings::default());
        let [warning] = &resolved.warnings[..] else {
            panic!("one warning: {:?}", resolved.warnings);
        };
        for said in ["--active-decode-blocks-threshold", "1.0, 10000000 and 64.0"] {
            assert!(warning.contains(said), "{warning}");
        }
    }
    for (flags, variables) in [
        (vec!["--admission-control=none"], vec![]),
        (
            vec!["--active-prefill-tokens-threshold", "5"],
            vec![("DYN_ADMISSION_CONTROL", "token-capacity")],
        ),
    ] {
        let resolved = resolved(&flags, &variables).unwrap();
        assert_eq!(resolved.warnings.len(), 1);
        assert!(
            !resolved.warnings[0].contains("10000000"),
            "{:?}",
            resolved.warnings
        );
    }
    assert!(
        resolved(&[], &[("DYN_ADMISSION_CONTROL", "")])
            .unwrap()
            .warnings
            .is_empty()
    );
}

#[test]
fn the_admin_routes_go_by_flag_or_variable() {
    let there = |flags: &[&str], variable: &str| {
        let variables = [("DYN_DISABLE_FRONTEND_ADMIN_API", variable)];
        resolved(flags, &variables).unwrap().settings.admin_api
    };
    for value in ["1", "true", " TRUE ", "yes", "on"] {
        assert!(!there(&[], value), "{value}");
    }
    for value in ["", "0", "false", "no", "off"] {
        assert!(there(&[], value), "{value}");
    }
    assert!(!there(&["--disable-frontend-admin-api"], "0"));
}

#[test]
fn pages_are_read_again_before_they_are_too_old() {
    let error = resolved(&["--scrape-interval", "10"], &[]).unwrap_err();
    assert!(error.to_string().contains("--load-ttl"), "{error}");
    assert!(resolved(&["--scrape-interval", "10", "--load-ttl", "30"], &[]).is_ok());
    let off = resolved(&["--no-scrape", "--load-ttl", "0.5"], &[]).unwrap();
    assert_eq!(off.settings.scrape_interval, None);
    assert!(parse(&["--no-scrape", "--scrape-interval", "1"]).is_err());
}

#[test]
fn sizes_and_accounting() {
    let flags = [
        "--kv-total-blocks=1000",
        "--max-num-batched-tokens=8192",
        "--kv-cache-block-size=32",
        "--router-track-output-blocks",
    ];
    let settings = resolved(&flags, &[]).unwrap().settings;
    assert_eq!(settings.totals.kv_total_blocks, Some(1000));
    assert_eq!(settings.totals.max_num_batched_tokens, Some(8192));
    assert_eq!(settings.block_size, 32);
    assert!(settings.track_output_blocks);
}
