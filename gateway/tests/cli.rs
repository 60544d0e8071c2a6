//! The program as a person runs it: exit codes, messages, clean stops.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program with a clean environment.
fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    tidegate(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A program that was started, killed at the end if it still runs. What it
/// says on either stream is read all the time, so that it never blocks.
struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut command = tidegate(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let streams: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("piped")),
            Box::new(child.stderr.take().expect("piped")),
        ];
        let readers = streams.map(|stream| {
            let lines = Arc::clone(&lines);
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    lines.lock().expect("no panics").push(line);
                }
            })
        });
        Running {
            child,
            lines,
            readers: readers.into(),
        }
    }

    /// The first line so far that contains `part`.
    fn line(&self, part: &str) -> Option<String> {
        let lines = self.lines.lock().expect("no panics");
        lines.iter().find(|line| line.contains(part)).cloned()
    }

    /// The numbers of each line that begins with `start`, its first word apart.
    fn rows(&self, start: &str) -> Vec<Vec<u64>> {
        let lines = self.lines.lock().expect("no panics");
        let rows = lines.iter().filter(|line| line.starts_with(start));
        rows.map(|row| {
            row.split_whitespace()
                .skip(1)
                .filter_map(|n| n.parse().ok())
                .collect()
        })
        .collect()
    }

    fn wait_for(&self, part: &str) -> String {
        poll(|| self.line(part)).unwrap_or_else(|| {
            panic!(
                "no line with {part:?} in {:#?}",
                self.lines.lock().expect("no panics")
            )
        })
    }

    /// Sends a signal by name, waits for the exit and for the last lines.
    fn stop(&mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([signal, &id])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        self.ended()
    }

    fn ended(&mut self) -> Option<i32> {
        let status = poll(|| self.child.try_wait().expect("a child")).expect("it ends");
        for reader in self.readers.drain(..) {
            reader.join().expect("no panics");
        }
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already in most cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again, for 10 s at most.
fn poll<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() > deadline {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_command_explains_itself() {
    let commands = [
        vec![],
        vec!["worker"],
        vec!["engine"],
        vec!["config"],
        vec!["load"],
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

#[test]
fn what_is_not_understood_is_exit_2_and_says_what_is_accepted() {
    for (arguments, expected) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["no-such-command"], "no-such-command"),
        (
            &[
                "worker",
                "--engine-request-limit",
                "0",
                "--engine-url",
                "http://127.0.0.1:1",
            ],
            "from 1 to ",
        ),
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
        (&["load"], "--url"),
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

/// Requests reach an engine from the load generator and are answered.
#[test]
fn load_reaches_a_simulated_engine() {
    let mut engine = Running::start(&[
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
    let url = line["url"].as_str().expect("a URL");
    let output = output(&["load", "--url", url, "--rate", "50", "--duration", "0.5"]);
    let summary = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert!(
        summary.contains("first token") && !summary.contains("failed"),
        "{summary}"
    );
    assert_eq!(engine.stop("-TERM"), Some(0));
}

/// A minute of the recorded trace, sped up, where there is one: `TIDEGATE_TRACES` names the folder.
#[test]
fn a_recorded_trace_replays() {
    let Some(folder) = std::env::var_os("TIDEGATE_TRACES") else {
        return;
    };
    let trace = std::path::Path::new(&folder).join("azure/AzureLLMInferenceTrace_conv.csv");
    let trace = trace.to_str().expect("UTF-8");
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
    let url = line["url"].as_str().expect("a URL");
    let output = output(&[
        "load",
        "--url",
        url,
        "--trace",
        trace,
        "--speed",
        "30",
        "--duration",
        "2",
    ]);
    let summary = text(&output.stdout);
    assert!(
        summary.contains("first token") && !summary.contains("failed"),
        "{summary}"
    );
}

#[test]
fn the_demo_shows_what_happens_and_stops_cleanly() {
    let mut demo = Running::start(&["--rate", "60"]);
    let curl = demo.wait_for("curl -N http://127.0.0.1:");
    assert!(curl.contains("/v1/chat/completions"), "{curl}");
    let line = demo.wait_for("queued");
    assert!(
        line.contains("running") && line.contains("refused"),
        "{line}"
    );
    assert_eq!(demo.stop("-TERM"), Some(0));
    for part in ["What the gates did", "What the clients saw", "first token"] {
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
