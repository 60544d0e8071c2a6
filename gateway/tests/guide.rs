//! Every command of `GUIDE.md`, in order, as a reader would run it.
//!
//! What is other than on the page: `vllm serve` is `tidegate engine`, ports are free ones,
//! measuring takes seconds instead of a minute, and files are in a folder of their own.

mod program;

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::{Running, text};

const GUIDE: &str = include_str!("../GUIDE.md");

/// A block of code: what kind it is, and what is in it.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let mut parts = GUIDE.split("```");
    parts.next();
    let mut blocks = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        blocks.push(block.split_once('\n').expect("a first line"));
    }
    blocks
}

/// The reader's place: a folder, and ports for those of the page.
struct Place {
    folder: PathBuf,
    ports: HashMap<&'static str, u16>,
}

impl Place {
    fn new() -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guide-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // Held together, so that they differ.
        let held: Vec<_> = ["8000", "8080", "8100", "8101"]
            .map(|port| (port, TcpListener::bind("127.0.0.1:0").expect("a free port")))
            .into();
        let port = |(name, held): &(&'static str, TcpListener)| {
            (*name, held.local_addr().expect("bound").port())
        };
        Self {
            folder,
            ports: held.iter().map(port).collect(),
        }
    }

    /// A command of the page, as it is run here.
    fn here(&self, command: &str) -> String {
        let mut command = command.replace(
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8000",
            "tidegate engine --speed 20 --listen 127.0.0.1:8000",
        );
        for (from, to) in [
            ("--interval 60s", "--interval 4s --every 0.2s"),
            ("--duration 90", "--duration 6"),
        ] {
            command = command.replace(from, to);
        }
        for (port, free) in &self.ports {
            command = command.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{free}"));
        }
        command
    }

    fn run(&self, mut command: Command) -> Command {
        let binaries = Path::new(env!("CARGO_BIN_EXE_tidegate"))
            .parent()
            .expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", binaries.display()))
            .stdin(Stdio::null());
        command
    }

    fn bash(&self, script: &str) -> Output {
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &self.here(script)]);
        self.run(bash).output().expect("bash runs")
    }

    /// A server, in place of the one that listens there already.
    fn serve(&self, command: &str, servers: &mut HashMap<String, Running>) {
        let command = self.here(command);
        let words: Vec<&str> = command.split_whitespace().collect();
        let listen = words
            .iter()
            .position(|word| *word == "--listen")
            .expect("an address");
        let listen = words[listen + 1].to_owned();
        // It has to be gone before the next one takes its port.
        if let Some(mut server) = servers.remove(&listen) {
            server.stop("-TERM");
        }
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("exec {}", command.trim())]);
        let server = Running::spawn(self.run(bash));
        server.wait_for(" listen");
        servers.insert(listen, server);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn every_command_does_what_it_should() {
    let (place, mut servers) = (Place::new(), HashMap::new());
    let mut outputs = Vec::new();
    for (kind, block) in blocks() {
        match kind {
            "sh server" => place.serve(block, &mut servers),
            "sh" | "python" => {
                let start = Instant::now();
                // A frontend sends nothing to a worker that was just started anew.
                let output = loop {
                    let output = match kind {
                        "sh" => place.bash(block),
                        _ => {
                            let mut python = Command::new("python3");
                            python.args(["-c", &place.here(block)]);
                            place.run(python).output().expect("python3 runs")
                        }
                    };
                    if output.status.success() || start.elapsed() > Duration::from_secs(5) {
                        break output;
                    }
                };
                let said = text(&output.stdout);
                assert!(
                    output.status.success(),
                    "{block}\nsays {said}\n{}",
                    text(&output.stderr)
                );
                outputs.push(said);
            }
            other => panic!("a block of kind {other:?} is not run"),
        }
    }
    // In the order of the page.
    let expected: [&[&str]; 8] = [
        &["live", "ready", "engine request limit"],
        &["\"choices\"", "Concurrency saturation", "0/256"],
        &["\"active_decode_blocks_threshold\":0.95", "20000"],
        &["engine-request-waiting-limit"],
        &["worker_type=\"prefill\""],
        &["is a policy of 3 classes"],
        &["\n"],
        &["without_source", "worker_load_stale", "state=\"free\""],
    ];
    assert_eq!(outputs.len(), expected.len());
    for (output, expected) in outputs.iter().zip(expected) {
        for said in expected {
            assert!(output.contains(said), "{said:?} is not in {output}");
        }
    }
}

#[test]
fn flags_and_metrics_that_it_names_are_there() {
    let helps: String = [
        "worker", "frontend", "size", "top", "load", "config", "policy",
    ]
    .map(|command| text(&program::output(&[command, "--help"]).stdout))
    .concat();
    let words = GUIDE.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let flags =
        words.filter(|word| word.starts_with("--") && word.len() > 2 && !word.starts_with("---"));
    for flag in flags.filter(|flag| !["--port"].contains(flag)) {
        assert!(helps.contains(flag), "{flag}");
    }
    let rules = include_str!("../deploy/prometheus/alerts.yml");
    assert!(GUIDE.contains("TidegateQueueNearlyFull") && rules.contains("TidegateQueueNearlyFull"));
}
