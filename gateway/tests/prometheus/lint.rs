//! What `promtool check metrics` says to `/metrics`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::load::{Client, Outcome, Planned};
use tidegate_gateway::scrape::page::Fetch;
use tidegate_gateway::worker::WorkerType;
use tokio::time::Instant;

use super::server::program;
use super::stack::{LONG, Stack, simulated};

/// Gauges whose names dashboards know, and which end as histograms' names should.
const OLD_HABIT: [&str; 3] = [
    "engine_request_count",
    "engine_request_waiting_count",
    "request_queue_count",
];

/// What promtool finds fault with.
fn faults(page: &str) -> Vec<String> {
    let mut promtool = Command::new(program("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut stdin = promtool.stdin.take().expect("piped");
    stdin.write_all(page.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn promtool_notices_what_is_wrong() {
    assert!(!faults("# TYPE a counter\na 1\n").is_empty());
    assert!(!faults("a{\n").is_empty());
}

#[tokio::test]
async fn promtool_finds_nothing_at_a_frontend() {
    let stack = Stack::start(simulated(2, 8, 20.0), |_| {}).await;
    let config = FrontendConfig::new(vec![stack.worker.url().parse().unwrap()]);
    let front = Frontend::start(config).unwrap();
    let target = front.url().parse().unwrap();
    let client = Client::new("sim");
    let one = Planned {
        at: Duration::ZERO,
        prompt_tokens: 1,
        output_tokens: 4,
        rank: None,
        leaves_after: None,
    };
    // With something in each of them.
    let served = async {
        while client.send(&target, &one, Instant::now()).await.0 != Outcome::Ok {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, served).await.unwrap();
    let url = format!("{}/metrics", front.url());
    let page = Fetch::new(url.parse().unwrap())
        .unwrap()
        .text(LONG)
        .await
        .unwrap();
    assert!(page.contains("dynamo_frontend_time_to_first_token_seconds_bucket"));
    assert_eq!(faults(&page), Vec::<String>::new(), "{page}");
}

#[tokio::test]
async fn promtool_finds_nothing_but_names_that_dashboards_know() {
    for (prefix, worker_type, legacy) in [
        (tidegate::metrics::PREFIX, None, false),
        ("mine_", Some(WorkerType::Decode), true),
    ] {
        let stack = Stack::start(simulated(2, 8, 20.0), |config| {
            config.metrics_prefix = prefix.to_owned();
            config.worker_type = worker_type;
            config.legacy_metrics = legacy;
        })
        .await;
        // With something in each of them.
        stack.idle().await;
        let url = format!("{}/metrics", stack.worker.url());
        let page = Fetch::new(url.parse().unwrap())
            .unwrap()
            .text(LONG)
            .await
            .unwrap();
        let known = OLD_HABIT.map(|name| format!("{prefix}{name} "));
        for fault in faults(&page) {
            let old = known.iter().any(|name| fault.starts_with(name));
            assert!(
                old && fault.contains("\"_count\" suffix"),
                "{fault}: {page}"
            );
        }
    }
}
