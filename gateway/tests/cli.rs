//! Commands that end by themselves: exit codes and messages.

mod program;

use std::net::TcpListener;

use program::{output, text, tidegate};

#[test]
fn every_command_explains_itself() {
    let commands = [
        vec![],
        vec!["worker"],
        vec!["frontend"],
        vec!["engine"],
        vec!["config"],
        vec!["load"],
        vec!["size"],
        vec!["simulate"],
        vec!["policy", "check"],
        vec!["demo"],
    ];
    for mut arguments in commands {
        arguments.push("--help");
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let help = text(&output.stdout);
        assert!(
            help.contains("Usage:") && help.contains("tidegate "),
            "{arguments:?}: {help}"
        );
    }
}

/// A worker's command line with one flag that matters.
fn worker<'a>(flag: &'a str, value: &'a str) -> [&'a str; 5] {
    ["worker", "--engine-url", "http://127.0.0.1:1", flag, value]
}

#[test]
fn what_is_not_understood_is_exit_2_and_says_what_is_accepted() {
    for (arguments, expected) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["no-such-command"], "no-such-command"),
        (&worker("--engine-request-limit", "0"), "from 1 to "),
        (
            &["config", "--engine-request-limit", "-1"],
            "the engine request limit is an integer from 1 to ",
        ),
        (
            &["config", "--request-queue-limit", "99999999999"],
            "the request queue limit is an integer from 0 to ",
        ),
        (&["config", "--engine-request-waiting-limit="], "from 1 to "),
        (&["config", "--dp-ranks", "7-0"], "such as 0-7"),
        (
            &["config", "--max-num-seqs", "0"],
            "max_num_seqs is an integer from 1 to ",
        ),
        (
            &[
                "config",
                "--dp-ranks",
                "0-63",
                "--request-queue-limit",
                "131071",
            ],
            "request_queue_limit",
        ),
        (
            &[
                "worker",
                "--engine-url",
                "http://127.0.0.1:1",
                "--listen",
                "127.0.0.1:0",
                "--dp-ranks",
                "0-63",
                "--request-queue-limit",
                "131071",
            ],
            "request_queue_limit",
        ),
        (&["engine", "--ranks", "0"], "1..=1024"),
        (
            &[
                "engine",
                "--max-num-seqs",
                "64",
                "--max-num-batched-tokens",
                "8",
            ],
            "at least max_num_seqs",
        ),
        (&["load", "--url", "nowhere"], "http://127.0.0.1:8100"),
        (
            &["load", "--url", "http://127.0.0.1:1", "--rate", "NaN"],
            "a number from 0.001 to ",
        ),
        (&["engine", "--startup-delay", "-1"], "from 0 to 86400"),
        (&["engine", "--listen", "foo"], "such as 127.0.0.1:8100"),
        (
            &["load", "--url", "http://127.0.0.1:1", "--rate", "-1"],
            "from 0.001",
        ),
        (&worker("--engine-idle-timeout", "-1"), "seconds above 0"),
        (&worker("--listen", "foo"), "such as 127.0.0.1:8100"),
        (&worker("--metrics-prefix", "a-b"), "letters, digits"),
        (&worker("--gate-route", "/{a}/{"), "a name in braces"),
        (&["load"], "--url"),
        (&["size"], "--metrics-url"),
        (
            &["size", "--metrics-url", "h:1"],
            "such as http://127.0.0.1:8100/metrics",
        ),
        (
            &["size", "--metrics-url", "http://h", "--interval", "0.1"],
            "--every must be shorter",
        ),
        (&["demo", "--duration", "-3"], "seconds above 0"),
        (
            &["--duration", "3", "config"],
            "demo flags come without a command",
        ),
        (&["--log-format", "xml"], "text, json"),
    ] {
        let output = output(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn config_reads_the_environment_and_warns() {
    let output = tidegate(&[
        "config",
        "--json",
        "--dp-ranks",
        "0-7",
        "--max-num-seqs",
        "256",
    ])
    .env("DYN_BACKEND_ADMISSION_ENGINE_REQUEST_LIMIT", " 64 ")
    .env("DYN_ENGINE_REQUEST_LIMIT", "not read, so no warning")
    .env("DYN_DYNAMO_REQUEST_QUEUE_LIMIT", "-1")
    .output()
    .expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let settings = &value["settings"];
    assert_eq!(settings["engine_request_limit"]["per_rank"], 64);
    assert_eq!(settings["engine_request_limit"]["worker"], 512);
    assert_eq!(
        settings["engine_request_limit"]["source"]["kind"],
        "environment"
    );
    assert_eq!(settings["engine_request_waiting_limit"]["per_rank"], 256);
    assert_eq!(settings["request_queue_limit"]["per_rank"], 512);
    assert_eq!(
        settings["request_queue_limit"]["source"]["kind"],
        "reported"
    );
    let warnings = value["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]
            .as_str()
            .expect("text")
            .contains("DYN_DYNAMO_REQUEST_QUEUE_LIMIT=\"-1\"")
    );
}

#[cfg(unix)]
#[test]
fn an_environment_value_that_is_not_utf_8_is_a_warning() {
    use std::os::unix::ffi::OsStrExt;
    let output = tidegate(&["config"])
        .env(
            "DYN_ENGINE_REQUEST_LIMIT",
            std::ffi::OsStr::from_bytes(b"\xff\xfe"),
        )
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("DYN_ENGINE_REQUEST_LIMIT="));
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    for arguments in [
        &["engine", "--listen", &address][..],
        &[
            "worker",
            "--engine-url",
            "http://127.0.0.1:1",
            "--listen",
            &address,
        ],
    ] {
        let output = output(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(
            message.contains(&address) && message.contains("--listen"),
            "{message}"
        );
    }
}

#[test]
fn load_against_nobody_counts_failures_and_ends() {
    let output = output(&[
        "load",
        "--url",
        "http://127.0.0.1:1",
        "--rate",
        "200",
        "--duration",
        "0.2",
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains("failed: no connection"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_trace_that_is_missing_is_named() {
    let output = output(&[
        "load",
        "--url",
        "http://127.0.0.1:1",
        "--trace",
        "/nonexistent.csv",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nonexistent.csv"));
}
