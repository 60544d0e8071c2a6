//! OpenAI's official Python client through a worker.
//!
//! Needs `python3` with its `venv` module, and PyPI for the first run; the
//! client's version is pinned in `openai_client/requirements.txt`. What the
//! client sees is checked in `openai_client/client.py`, what the gate sees here.

mod python;
mod stack;

use std::process::Stdio;

use python::Python;
use stack::{LONG, Stack, simulated, soon};
use tidegate_gateway::engine::Engine;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The client.
static CLIENT: Python = Python::new(
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openai_client/client.py"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/openai-client"),
);

/// A scenario of `client.py`, under way.
struct Scenario {
    child: Child,
    says: BufReader<ChildStdout>,
    hears: ChildStdin,
    errors: ChildStderr,
}

impl Scenario {
    fn start(name: &str, urls: &[&str]) -> Self {
        let mut child = Command::from(CLIENT.command())
            .arg(name)
            .args(urls)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("sh runs");
        Self {
            says: BufReader::new(child.stdout.take().expect("piped")),
            hears: child.stdin.take().expect("piped"),
            errors: child.stderr.take().expect("piped"),
            child,
        }
    }

    /// Waits until the client says that it is there. An interpreter that starts
    /// beside others may take its time.
    async fn reaches(&mut self, expected: &str) {
        let mut line = String::new();
        let read = tokio::time::timeout(12 * LONG, self.says.read_line(&mut line)).await;
        read.expect("the client says something").expect("a pipe");
        if line.trim() != expected {
            let errors = self.errors().await;
            panic!("not {expected:?} but {line:?}: {errors}");
        }
    }

    async fn go_on(&mut self) {
        self.hears.write_all(b"go on\n").await.expect("a pipe");
    }

    async fn errors(&mut self) -> String {
        let mut errors = String::new();
        let read = self.errors.read_to_string(&mut errors);
        soon("the end of the client", read).await.expect("a pipe");
        errors
    }

    async fn ends_well(mut self) {
        let ended = tokio::time::timeout(12 * LONG, self.child.wait()).await;
        let status = ended.expect("the client ends").expect("a child");
        let errors = self.errors().await;
        assert!(status.success(), "{errors}");
    }
}

#[tokio::test]
async fn the_client_gets_the_same_with_and_without_the_worker() {
    let stack = Stack::start(simulated(1, 8, 20.0), |_| {}).await;
    let twin = Engine::start(simulated(1, 8, 20.0)).await.unwrap();
    let urls = [stack.worker.url(), twin.url()];
    let scenario = Scenario::start("unchanged", &[&urls[0], &urls[1]]);
    scenario.ends_well().await;
    // Every generating call, the one for another model too, passed the gate.
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_direct), 5);
    stack.idle().await;
}

#[tokio::test]
async fn a_refusal_is_an_error_of_the_clients_own() {
    let stack = Stack::small(1, 1, 0).await;
    let mut client = Scenario::start("refused", &[&stack.worker.url()]);
    client.reaches("streaming").await;
    stack.holds(1, 0, 0).await;
    client.go_on().await;
    client.reaches("closed").await;
    stack.holds(0, 0, 0).await;
    assert_eq!(stack.snapshot().total(|lane| lane.rejected_worker), 4);
    client.go_on().await;
    client.ends_well().await;
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_direct), 2);
    stack.idle().await;
}

#[tokio::test]
async fn the_clients_own_retries_get_in_when_there_is_room() {
    let stack = Stack::small(1, 1, 0).await;
    let mut client = Scenario::start("retried", &[&stack.worker.url()]);
    client.reaches("refused").await;
    let refused = |seen: &tidegate::Snapshot| seen.total(|lane| lane.rejected()) > 0;
    stack.until("one refusal", refused).await;
    client.go_on().await;
    client.ends_well().await;
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_direct), 2);
    stack.idle().await;
}

#[tokio::test]
async fn a_stream_that_the_client_closes_frees_its_slot_and_the_engine() {
    let stack = Stack::small(1, 1, 0).await;
    let mut client = Scenario::start("closed", &[&stack.worker.url()]);
    for _ in 0..2 {
        client.reaches("streaming").await;
        stack.holds(1, 0, 0).await;
        stack.engine_holds(1).await;
        client.go_on().await;
        client.reaches("closed").await;
        stack.holds(0, 0, 0).await;
        stack.engine_holds(0).await;
        client.go_on().await;
    }
    client.ends_well().await;
    let engine = stack.engine_settled().await;
    assert_eq!(engine, (2, 0, 2), "received, finished, cancelled");
    stack.idle().await;
}

#[tokio::test]
async fn a_task_cancelled_while_queued_leaves_the_queue() {
    let stack = Stack::small(1, 1, 2).await;
    let mut client = Scenario::start("cancelled", &[&stack.worker.url()]);
    client.reaches("queued").await;
    stack.holds(1, 0, 2).await;
    client.go_on().await;
    client.reaches("cancelled").await;
    stack.holds(1, 0, 0).await;
    let seen = stack.snapshot();
    assert_eq!(seen.total(|lane| lane.cancelled), 2);
    assert_eq!(seen.total(|lane| lane.rejected()), 0);
    // The engine never heard of them.
    assert_eq!(stack.engine.stats()[0].received, 1);
    client.go_on().await;
    client.reaches("queued").await;
    stack.holds(1, 0, 1).await;
    client.go_on().await;
    client.ends_well().await;
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_queue), 1);
    stack.idle().await;
}

#[tokio::test]
async fn a_queued_client_that_is_told_so_has_its_stream_at_once() {
    let stack = Stack::small(1, 1, 2).await;
    let mut client = Scenario::start("told", &[&stack.worker.url()]);
    client.reaches("queued").await;
    stack.holds(1, 0, 2).await;
    client.go_on().await;
    client.ends_well().await;
    assert_eq!(stack.snapshot().total(|lane| lane.admitted_queue), 2);
    stack.idle().await;
}
