//! Commands that run until they are told to stop: what they show, and how they end.

mod program;

use std::process::Output;

use program::{Running, output, text};

/// A simulated engine that is 100 times as fast as an H100, and its URL.
fn fast_engine() -> (Running, String) {
    let engine = Running::start(&[
        "engine",
        "--listen",
        "127.0.0.1:0",
        "--speed",
        "100",
        "--log-format",
        "json",
    ]);
    let line: serde_json::Value =
        serde_json::from_str(&engine.wait_for("listening")).expect("JSON");
    let url = line["url"].as_str().expect("a URL").to_owned();
    (engine, url)
}

/// The load generator got answers, and nothing but answers.
fn assert_answered(load: &Output) {
    let summary = text(&load.stdout);
    assert!(
        summary.contains("first token") && !summary.contains("failed"),
        "{summary}"
    );
}

#[test]
fn an_engine_stops_cleanly_on_either_signal() {
    for signal in ["-TERM", "-INT"] {
        let mut engine = Running::start(&["engine", "--listen", "127.0.0.1:0"]);
        engine.wait_for("listening");
        assert_eq!(engine.stop(signal), Some(0), "{signal}");
    }
}

#[test]
fn log_lines_can_be_json() {
    let engine = Running::start(&["engine", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    let line = engine.wait_for("listening");
    let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(value["level"], "INFO");
    assert!(
        value["url"]
            .as_str()
            .is_some_and(|url| url.starts_with("http://127.0.0.1:")),
        "{line}"
    );
}

/// Requests reach an engine from the load generator and are answered.
#[test]
fn load_reaches_a_simulated_engine() {
    let (mut engine, url) = fast_engine();
    let output = output(&["load", "--url", &url, "--rate", "50", "--duration", "0.5"]);
    assert_eq!(output.status.code(), Some(0));
    assert_answered(&output);
    assert_eq!(engine.stop("-TERM"), Some(0));
}

/// A minute of the recorded trace, sped up, where there is one: `TIDEGATE_TRACES`
/// names the folder.
#[test]
fn a_recorded_trace_replays() {
    let Some(folder) = std::env::var_os("TIDEGATE_TRACES") else {
        eprintln!(
            "SKIPPED: set TIDEGATE_TRACES to a folder with azure/AzureLLMInferenceTrace_conv.csv"
        );
        return;
    };
    let trace = std::path::Path::new(&folder).join("azure/AzureLLMInferenceTrace_conv.csv");
    let trace = trace.to_str().expect("UTF-8");
    let (_engine, url) = fast_engine();
    let output = output(&[
        "load",
        "--url",
        &url,
        "--trace",
        trace,
        "--speed",
        "30",
        "--duration",
        "2",
    ]);
    assert_answered(&output);
}

#[test]
fn the_demo_shows_what_happens_and_stops_cleanly() {
    let mut demo = Running::start(&["--rate", "60"]);
    // What the engines told their workers, which were told nothing else.
    demo.wait_for("2 ranks; per rank 4 requests in the engine, 8 in the queue");
    let curl = demo.wait_for("curl -N http://127.0.0.1:");
    assert!(curl.contains("/v1/chat/completions"), "{curl}");
    demo.wait_for("refused by workers");
    let line = demo.wait_for("queued ");
    assert!(
        line.contains("running") && line.contains("refused"),
        "{line}"
    );
    assert_eq!(demo.stop("-TERM"), Some(0));
    for part in [
        "What the gates did",
        "What the frontend did",
        "What the clients saw",
        "first token",
    ] {
        assert!(demo.line(part).is_some(), "{part}");
    }
    assert_eq!(demo.line("failed:"), None);
    let rows = demo.rows("  127.0.0.1:");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let [received, ends @ ..] = &row[..] else {
            panic!("an empty row")
        };
        assert!(*received > 0);
        assert_eq!(*received, ends.iter().sum::<u64>(), "{row:?}");
    }
}

#[test]
fn the_demo_ends_after_its_duration() {
    let mut demo = Running::start(&["demo", "--no-load", "--duration", "0.2"]);
    assert_eq!(demo.ended(), Some(0));
    assert!(demo.line("What the gates did").is_some());
    assert!(demo.line("What the clients saw").is_none());
}

#[test]
fn demos_side_by_side_use_other_ports_and_say_so() {
    let first = Running::start(&["demo", "--no-load"]);
    let url = first.wait_for("curl -N");
    let second = Running::start(&["demo", "--no-load"]);
    second.wait_for(" takes its place");
    assert_ne!(second.wait_for("curl -N"), url);
}
