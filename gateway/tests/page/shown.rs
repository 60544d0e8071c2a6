//! What the page shows, against what `/metrics` says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::load::{Arrivals, Client, Load, Mix, Target, play};
use tidegate_gateway::page::Reading;
use tidegate_gateway::page::gate::Lane;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_gateway::scrape::exposition::read;
use tidegate_gateway::scrape::page::Fetch;
use tidegate_gateway::worker::{Worker, WorkerConfig};
use tidegate_policy::file;
use tokio_util::sync::CancellationToken;

use super::browser::Browser;
use super::program::Running;
use super::stack::{LONG, Stack, limits, simulated};

/// The lines of the table of ranks: its cells, and the first one's text as the key.
const LANES: &str =
    "return Object.fromEntries([...document.querySelectorAll('#lanes tbody tr')].map(
    row => [row.cells[0].textContent, [...row.cells].slice(1).map(cell => cell.textContent)]));";

async fn metrics(url: &str) -> Reading {
    let page = Fetch::new(format!("{url}/metrics").parse().unwrap()).unwrap();
    Reading::of(&read(&page.text(LONG).await.unwrap()))
}

/// The lines of a worker's own page that its `/metrics` asks for.
fn expected(reading: &Reading) -> BTreeMap<String, Vec<String>> {
    let gate = &reading.gates[0];
    let line = |lane: &Lane| {
        let (name, ranks) = match lane.rank.as_str() {
            "unspecified" => ("no rank named".to_owned(), gate.ranks),
            rank => (format!("rank {rank}"), 1),
        };
        let of = |count: u64, limit: u64| format!("{count} of {}", limit * ranks);
        let cells = vec![
            of(lane.running, gate.limits.running),
            of(lane.waiting, gate.limits.waiting),
            of(lane.queued, gate.limits.queued),
            lane.direct.to_string(),
            lane.from_queue.to_string(),
            (lane.rejected_rank + lane.rejected_worker).to_string(),
            lane.cancelled.to_string(),
        ];
        (name, cells)
    };
    gate.lanes.iter().map(line).collect()
}

/// More than fits, until stopped.
fn traffic(url: &str) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let stop = CancellationToken::new();
    let (target, stopped): (Target, _) = (url.parse().unwrap(), stop.clone());
    let mix = Mix {
        rate: 60.0,
        ranks: vec![0, 1],
        ranked: 0.5,
        leave: 0.05,
        ..Mix::default()
    };
    let playing = tokio::spawn(async move {
        let (client, load) = (Client::new("sim"), Load::default());
        play(Arrivals::new(mix, 21), &[target], &client, &load, &stopped).await;
    });
    (stop, playing)
}

#[tokio::test]
async fn a_worker_shows_what_its_metrics_say_while_it_runs_and_when_it_rests() {
    let stack = Stack::start(simulated(2, 4, 1.0), |config| {
        config.settings = limits(4, 4, 4);
    })
    .await;
    let url = stack.worker.url();
    let browser = Browser::start(1200, 900).await;
    // The address alone: the engine has nothing there.
    browser.open(&format!("{url}/")).await;
    let at = browser.client.current_url().await.unwrap();
    assert_eq!(at.as_str(), format!("{url}/tidegate/"));
    let (stop, playing) = traffic(&url);
    let refused = "return document.querySelectorAll('#refusals tbody tr').length";
    browser
        .until("refuses", refused, |rows| rows.as_u64() > Some(0))
        .await;
    browser
        .until(
            "queues",
            "return document.querySelector('#concurrency-list dd:last-of-type').textContent",
            |text| text.as_str().is_some_and(|text| !text.starts_with("0 ")),
        )
        .await;

    // While it runs: not less than before, and not more than after, one refresh later.
    let before = metrics(&url).await.gates[0].total(|lane| lane.direct);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let shown = browser.script(LANES).await;
    let after = metrics(&url).await.gates[0].total(|lane| lane.direct);
    let lanes = shown.as_object().unwrap().values();
    let shown: u64 = lanes
        .map(|cells| {
            cells[3]
                .as_str()
                .unwrap()
                .replace(',', "")
                .parse::<u64>()
                .unwrap()
        })
        .sum();
    assert!(
        (before..=after).contains(&shown),
        "{before} <= {shown} <= {after}"
    );
    // It tells decisions, too, with their reasons.
    let decisions = "return document.getElementById('decisions').innerText";
    browser
        .until("decides", decisions, |text| {
            let text = text.as_str().unwrap_or_default();
            text.contains("refused") && text.contains("request_queue") && text.contains("admitted")
        })
        .await;

    stop.cancel();
    playing.await.unwrap();
    stack.holds(0, 0, 0).await;
    let expected = serde_json::to_value(expected(&metrics(&url).await)).unwrap();
    browser
        .until(&format!("as in {expected}"), LANES, |shown| {
            *shown == expected
        })
        .await;
    let none: [String; 0] = [];
    assert_eq!(browser.console().await, none);
    browser.close().await;
}

#[tokio::test]
async fn a_frontend_shows_its_workers_and_comes_back_after_a_restart() {
    let stack = Stack::start(simulated(1, 4, 20.0), |_| {}).await;
    let worker = stack.worker.url();
    let config = |listen| {
        let mut config = FrontendConfig::new(vec![worker.parse().unwrap()]);
        config.listen = listen;
        config.drain_timeout = Duration::from_secs(30);
        config
    };
    let front = Frontend::start(config("127.0.0.1:0".parse().unwrap())).unwrap();
    let (addr, url) = (front.addr(), front.url());
    let browser = Browser::start(1200, 900).await;
    browser.open(&url).await;
    let state = "return document.querySelector('#workers tbody td')?.textContent";
    browser.until("free", state, |text| *text == "free").await;
    let lanes = "return document.getElementById('lanes')?.innerText";
    browser
        .until("its lanes", lanes, |text| {
            text.as_str()
                .is_some_and(|text| text.contains("worker 0, rank 0"))
        })
        .await;

    let connection = "return document.getElementById('connection').textContent";
    // An open page does not hold up the end, which has half a minute.
    tokio::time::timeout(LONG, front.shutdown())
        .await
        .expect("no waiting for viewers");
    browser
        .until("noticed", connection, |text| {
            text.as_str().is_some_and(|text| text.contains("lost"))
        })
        .await;
    let front = Frontend::start(config(addr)).unwrap();
    browser
        .until("back", connection, |text| *text == "Live")
        .await;
    browser.until("free", state, |text| *text == "free").await;
    let lost = "return document.body.classList.contains('lost')";
    assert_eq!(browser.script(lost).await, Value::Bool(false));
    // A connection that is refused is told by the browser itself, and nothing else is.
    for line in browser.console().await {
        assert!(
            line.contains("/tidegate/live") && line.contains("net::ERR_"),
            "{line}"
        );
    }
    drop(front);
    browser.close().await;
}

#[tokio::test]
async fn a_worker_that_is_started_again_is_followed_and_its_counts_begin_anew() {
    let Stack { engine, worker } = Stack::start(simulated(1, 2, 20.0), |_| {}).await;
    let (addr, url) = (worker.addr(), worker.url());
    let browser = Browser::start(1000, 800).await;
    browser.open(&format!("{url}/tidegate/")).await;
    let (stop, playing) = traffic(&url);
    let admitted =
        "return document.querySelector('#lanes tbody tr:last-of-type')?.cells[4].textContent ?? ''";
    browser
        .until("admits", admitted, |text| {
            !["", "0"].contains(&text.as_str().unwrap_or(""))
        })
        .await;
    stop.cancel();
    playing.await.unwrap();
    tokio::time::timeout(LONG, worker.shutdown())
        .await
        .expect("no waiting for viewers");
    let config = WorkerConfig {
        listen: addr,
        ..WorkerConfig::new(engine.url().parse().unwrap())
    };
    let again = Arc::new(Worker::start(config).unwrap());
    browser
        .until("begins anew", admitted, |text| *text == "0")
        .await;
    let connection = "return document.getElementById('connection').textContent";
    browser
        .until("back", connection, |text| *text == "Live")
        .await;
    drop(again);
    browser.close().await;
}

/// Whoever waits at the frontend is let in within half a second, or not at all.
const HOLDS: &str = r#"
default_class = "silver"
[[class]]
name = "silver"
first_token_ms = 600000
queue_timeout_ms = 500
[[class]]
name = "gold"
first_token_ms = 600000
queue_timeout_ms = 60000
"#;

#[tokio::test]
async fn a_frontend_shows_who_is_held_how_long_they_wait_and_whom_its_policy_refused() {
    let stack = Stack::start(simulated(2, 4, 1.0), |config| {
        config.settings = limits(4, 4, 0);
    })
    .await;
    let mut config = FrontendConfig::new(vec![stack.worker.url().parse().unwrap()]);
    config.policy = Some(PolicyConfig::new(file::parse(HOLDS).unwrap()));
    let front = Frontend::start(config).unwrap();
    let browser = Browser::start(1200, 900).await;
    browser.open(&format!("{}/tidegate/", front.url())).await;
    let (stop, playing) = traffic(&front.url());
    // Held, waited, admitted, refused: each more than nothing at some time.
    for (cell, what) in [(1, "held"), (2, "waited"), (4, "admitted"), (5, "refused")] {
        let script = format!(
            "return [...document.querySelectorAll('#queues tbody tr')].find(row => \
             row.cells[0].textContent == 'sim, silver')?.cells[{cell}].textContent ?? ''"
        );
        browser
            .until(what, &script, |text| {
                !["", "0", "–"].contains(&text.as_str().unwrap_or(""))
            })
            .await;
    }
    let gold = "return [...document.querySelectorAll('#queues tbody tr')].find(row => \
        row.cells[0].textContent == 'sim, gold')?.innerText.split(/\\s+/).join(' ')";
    let text = browser.script(gold).await;
    assert_eq!(text, "sim, gold 0 – – 0 0");
    let reasons = "return document.getElementById('refusals').innerText";
    browser
        .until("says why", reasons, |text| {
            text.as_str()
                .is_some_and(|text| text.contains("held too long"))
        })
        .await;
    stop.cancel();
    playing.await.unwrap();
    let none: [String; 0] = [];
    assert_eq!(browser.console().await, none);
    browser.close().await;
}

#[tokio::test]
async fn whoever_starts_the_demo_sees_admission_control_at_work() {
    let mut demo = Running::start(&["demo"]);
    let line = demo.wait_for("Watch it in a browser:");
    let url = line.split_whitespace().last().unwrap().to_owned();
    let browser = Browser::start(1200, 900).await;
    browser.open(&url).await;
    let start = tokio::time::Instant::now();
    let mut wanted = vec![
        (
            "queues",
            "return /queued at the gate\\s*[1-9]/.test(document.body.innerText)",
        ),
        (
            "refuses",
            "return [...document.querySelectorAll('#refusals tbody tr')].some(row => row.cells[0].textContent.startsWith('every worker'))",
        ),
        (
            "has goodput",
            "return parseFloat(document.getElementById('goodput-now').textContent) > 0",
        ),
        (
            "says so",
            "return document.getElementById('story').textContent.startsWith('More comes than fits')",
        ),
        (
            "knows the device",
            "return document.getElementById('gpu-now').textContent.endsWith('%')",
        ),
        (
            "has both workers",
            "return document.querySelectorAll('#workers tbody tr').length == 2",
        ),
        (
            "has classes",
            "return /worker 0, silver/.test(document.getElementById('classes')?.innerText)",
        ),
    ];
    while let Some((what, script)) = wanted.first() {
        if browser.script(script).await == Value::Bool(true) {
            wanted.remove(0);
        } else {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "not within a minute: {what}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let none: [String; 0] = [];
    assert_eq!(browser.console().await, none);
    browser.close().await;
    demo.stop("-INT");
}
