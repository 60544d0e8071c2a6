//! `tidegate size` as a process, before a worker with a simulated engine.

mod program;
mod stack;

use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use stack::{Stack, limits, simulated};
use tidegate_gateway::engine::EngineConfig;
use tidegate_gateway::load::{Client, Outcome, Planned};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

/// One step of the engine.
const STEP: Duration = Duration::from_millis(200);

/// The time from one request to the next.
const GAP: Duration = Duration::from_millis(50);

/// An engine of which every step takes [`STEP`]: who comes waits for the end of
/// the current one and the whole next one, 1.5 steps on average.
fn stepping() -> EngineConfig {
    let mut config = simulated(1, 256, 1.0);
    config.batch.cost.floor_us = STEP.as_micros() as f64;
    config
}

async fn size(arguments: &[&str]) -> Output {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let run = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        program::output(&[&["size"], &arguments[..]].concat())
    };
    tokio::task::spawn_blocking(run).await.expect("it runs")
}

fn json(output: &Output) -> Value {
    let said = program::text(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn asks(output_tokens: u32) -> Planned {
    Planned {
        at: Duration::ZERO,
        prompt_tokens: 1,
        output_tokens,
        rank: None,
        leaves_after: None,
    }
}

/// Sends requests one by one for ever; gives up what it measured when dropped.
async fn load(url: String, waits: tokio::sync::mpsc::UnboundedSender<Duration>) {
    let (client, target) = (Client::new("sim"), url.parse().expect("a target"));
    let mut under_way = JoinSet::new();
    let mut clock = interval(GAP);
    loop {
        clock.tick().await;
        let (client, target, waits): (Client, tidegate_gateway::load::Target, _) =
            (client.clone(), Clone::clone(&target), waits.clone());
        under_way.spawn(async move {
            let (outcome, wait) = client.send(&target, &asks(2), Instant::now()).await;
            if outcome == Outcome::Ok {
                let _ = waits.send(wait.expect("a token"));
            }
        });
        while under_way.try_join_next().is_some() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mean_wait_is_the_one_that_clients_see() {
    let stack = Stack::start(stepping(), |_| {}).await;
    let (sender, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let loading = tokio::spawn(load(stack.worker.url(), sender));
    // Warm, with as many in as there will be.
    for _ in 0..10 {
        waits.recv().await.expect("an answer");
    }
    let url = format!("{}/metrics", stack.worker.url());
    let flags = ["--metrics-url", &url, "--interval", "6s", "--every", "0.05"];
    let output = size(&[&flags[..], &["--json", "--rank", "0"]].concat()).await;
    let found = json(&output);
    let said = program::text(&output.stderr);
    assert!(
        said.contains("measuring") && said.contains(" of 6 s"),
        "{said}"
    );
    loading.abort();
    let mut seen = Vec::new();
    while let Ok(wait) = waits.try_recv() {
        seen.push(wait.as_secs_f64());
    }
    let mean = seen.iter().sum::<f64>() / seen.len() as f64;
    let wait = found["mean_wait_seconds"].as_f64().expect("a number");
    let off = wait / mean - 1.0;
    eprintln!(
        "clients saw {mean:.4} s, found {wait:.4} s, {:+.1} %",
        off * 100.0
    );
    assert!(off.abs() < 0.1, "clients saw {mean}: {found}");
    let least = found["mean_waiting"].as_f64().expect("a number").ceil();
    assert_eq!(found["engine_request_waiting_limit"].as_f64(), Some(least));
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_with_queueing_ends_at_once_and_says_why() {
    let stack = Stack::small(1, 1, 4).await;
    let mut clients = JoinSet::new();
    let mut send = |output_tokens| {
        let target = stack.worker.url().parse().expect("a target");
        clients.spawn(async move {
            let client = Client::new("sim");
            let planned = asks(output_tokens);
            client.send(&target, &planned, Instant::now()).await
        });
    };
    send(100_000);
    stack.holds(1, 0, 0).await;
    send(1);
    stack.holds(1, 0, 1).await;
    // It does not go on for an hour.
    let url = format!("{}/metrics", stack.worker.url());
    let output = size(&["--metrics-url", &url, "--interval", "3600", "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["reason"], "queueing");
    let said = program::text(&output.stderr);
    assert!(
        said.contains("queued at the gate") && said.contains("Raise"),
        "{said}"
    );
    drop(clients);
    stack.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_is_too_few_samples() {
    let stack = Stack::start(simulated(2, 8, 1.0), |config| {
        config.settings = limits(1, 1, 0);
        config.metrics_prefix = "mine_".to_owned();
    })
    .await;
    let url = format!("{}/metrics", stack.worker.url());
    let short = [
        "--metrics-url",
        &url,
        "--interval",
        "0.2",
        "--every",
        "0.05",
    ];
    let with = |more: &[&str]| {
        [&short[..], more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (more, code, expected) in [
        (
            &["--metrics-prefix", "mine_"][..],
            1,
            "0 requests were admitted",
        ),
        (
            &["--metrics-prefix", "mine_", "--rank", "7"],
            1,
            "the worker has 0-1",
        ),
        (&[], 1, "--metrics-prefix"),
        (&["--match", "a=\"b\""], 2, "cannot be used with"),
        (&["--prometheus-url", &url], 2, "--prometheus-url"),
    ] {
        let arguments = with(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = size(&arguments).await;
        let said = program::text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.contains(expected), "{more:?}: {said}");
    }
}

/// One lane's counts: waiting, queued, received, admitted at once and from the queue,
/// refused, and left.
type Lane = (&'static str, [u64; 7]);

/// The page of a worker with these lanes.
fn page(lanes: &[Lane]) -> String {
    let mut text = String::new();
    for (lane, counts) in lanes {
        let names = [
            ("engine_request_waiting_count", ""),
            ("request_queue_count", ""),
            ("request_receive_total", ""),
            ("request_admit_total", ",source=\"direct\""),
            ("request_admit_total", ",source=\"queue\""),
            ("rejection_total", ",scope=\"rank\""),
            ("cancellation_total", ""),
        ];
        for ((name, more), value) in names.into_iter().zip(counts) {
            text +=
                &format!("dynamo_backend_admission_{name}{{dp_rank=\"{lane}\"{more}}} {value}\n");
        }
    }
    text
}

/// Serves one page, and from the second request on the other.
async fn serve(pages: [String; 2]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut served = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).await;
            let page = &pages[served.min(1)];
            served += 1;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                page.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

/// Each kind of window from which nothing follows, read by the program from a page;
/// and one like them from which something does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_unusable_window_is_refused_with_its_reason() {
    let start = [2, 0, 100, 100, 0, 0, 0];
    let after = [2, 0, 200, 200, 0, 0, 0];
    let one = |counts| vec![("0", counts), ("unspecified", [0; 7])];
    let two = |unspecified| vec![("0", after), ("1", after), ("unspecified", unspecified)];
    for (before, then, reason, said) in [
        (one(start), one(after), None, ""),
        (
            one(start),
            one([2, 3, 200, 197, 0, 0, 0]),
            Some("queueing"),
            "Raise the engine limits",
        ),
        (
            one(start),
            one([2, 0, 200, 190, 10, 0, 0]),
            Some("queueing"),
            "queued at the gate (0)",
        ),
        (
            one(start),
            one([2, 0, 200, 195, 0, 5, 0]),
            Some("rejections"),
            "5 requests were refused (0)",
        ),
        (
            one(start),
            one([2, 0, 200, 194, 0, 0, 6]),
            Some("cancellations"),
            "6 of 100 requests left before admission",
        ),
        (
            one(start),
            one([2, 0, 119, 119, 0, 0, 0]),
            Some("too_few_samples"),
            "19 requests were admitted",
        ),
        (
            two([0; 7]),
            two([0, 0, 1, 1, 0, 0, 0]),
            Some("unspecified_rank"),
            "1 requests named no known rank",
        ),
        (one(after), one(start), Some("restarted"), "Measure again"),
        (
            one(start),
            two([0; 7]),
            Some("ranks_changed"),
            "its engine reported",
        ),
    ] {
        let url = serve([page(&before), page(&then)]).await;
        let flags = ["--interval", "0.3", "--every", "0.1", "--json"];
        let output = size(&[&["--metrics-url", &url], &flags[..]].concat()).await;
        let answer = json(&output);
        let words = program::text(&output.stderr);
        assert_eq!(answer["reason"].as_str(), reason, "{words}");
        assert!(words.contains(said), "{reason:?}: {words}");
        let code = if reason.is_some() { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_named_with_its_address() {
    let stack = Stack::small(1, 1, 0).await;
    let (engine, worker) = (stack.engine.url(), stack.worker.url());
    for (flag, url, expected) in [
        (
            "--metrics-url",
            "http://127.0.0.1:1/metrics".to_owned(),
            "no connection",
        ),
        (
            "--metrics-url",
            format!("{engine}/metrics"),
            "no metric of a gate is there",
        ),
        ("--metrics-url", format!("{engine}/nowhere"), "status 404"),
        ("--prometheus-url", worker.clone(), "status 404"),
        (
            "--prometheus-url",
            format!("{worker}/metrics?"),
            "not the answer of a Prometheus server",
        ),
    ] {
        let output = size(&[flag, &url]).await;
        let said = program::text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(
            said.contains(expected) && said.contains("http://"),
            "{url}: {said}"
        );
    }
    // A worker that goes away in the middle is not waited for.
    let url = format!("{worker}/metrics");
    let measuring = tokio::spawn(async move {
        size(&[
            "--metrics-url",
            &url,
            "--interval",
            "3600",
            "--every",
            "0.05",
        ])
        .await
    });
    sleep(Duration::from_millis(300)).await;
    drop(stack);
    let output = measuring.await.expect("it ends");
    assert_eq!(output.status.code(), Some(1));
}
