//! The alert rules and the dashboard of `gateway/deploy`, by Prometheus itself.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tidegate_gateway::frontend::{Frontend, FrontendConfig};
use tidegate_gateway::load::{Arrivals, Client, Load, Mix, play};
use tidegate_gateway::monitor::Thresholds;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_policy::file;
use tidegate_policy::shadow::Mode;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::server::{Prometheus, program};
use super::stack::{LONG, Stack, limits, simulated};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus/alerts.yml");
const RULES_TEST: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/prometheus/alerts_test.yml"
);
const DASHBOARD: &str = include_str!("../../deploy/grafana/tidegate.json");

/// Whoever waits at the frontend is let in soon, or not at all.
const HOLDS: &str = r#"
default_class = "silver"
[[class]]
name = "silver"
first_token_ms = 600000
queue_timeout_ms = 500
"#;

/// What `promtool` says, and whether it is content.
fn promtool(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program("promtool"))
        .args(arguments)
        .output()
        .expect("promtool runs");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn promtool_takes_the_rules_and_each_alert_comes_when_it_should() {
    let (fine, said) = promtool(&["check", "rules", RULES]);
    assert!(fine && said.contains("rules found"), "{said}");
    let (fine, said) = promtool(&["test", "rules", RULES_TEST]);
    assert!(fine, "{said}");
    let tests = std::fs::read_to_string(RULES_TEST).unwrap();
    for alert in std::fs::read_to_string(RULES)
        .unwrap()
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        assert_eq!(
            tests.matches(&format!("alertname: {alert}\n")).count(),
            1,
            "{alert} has no test"
        );
        assert_eq!(
            tests
                .matches(&format!("alertname: {alert}, exp_alerts: []"))
                .count(),
            1,
            "{alert}"
        );
    }
}

/// Every query of the dashboard, for all instances, with a window that fits a scrape
/// ten times a second.
fn queries() -> Vec<String> {
    let board: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    let targets = panels
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let filled = |target: &Value| {
        let query = target["expr"].as_str().expect("a query");
        query
            .replace("$__rate_interval", "5s")
            .replace("$instance", ".*")
    };
    targets.map(filled).collect()
}

/// The metrics that a text names.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("dynamo_"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn every_query_of_the_dashboard_and_every_metric_of_the_rules_has_an_answer() {
    let stack = Stack::start(simulated(2, 4, 1.0), |config| {
        config.settings = limits(4, 4, 4);
        config.policy = Some(PolicyConfig {
            mode: Mode::Observe,
            ..PolicyConfig::new(file::parse(file::DEFAULT).unwrap())
        });
    })
    .await;
    let mut config = FrontendConfig::new(vec![stack.worker.url().parse().unwrap()]);
    config.monitor.thresholds = Thresholds {
        active_prefill_tokens: Some(100_000),
        ..Thresholds::default()
    };
    config.policy = Some(PolicyConfig::new(file::parse(HOLDS).unwrap()));
    let front = Frontend::start(config).unwrap();
    let stop = CancellationToken::new();
    let playing = tokio::spawn({
        let (target, stop) = (front.url().parse().unwrap(), stop.clone());
        let mix = Mix {
            rate: 60.0,
            ranks: vec![0, 1],
            ranked: 0.5,
            leave: 0.05,
            ..Mix::default()
        };
        async move {
            let (client, load) = (Client::new("sim"), Load::default());
            play(Arrivals::new(mix, 21), &[target], &client, &load, &stop).await;
        }
    });
    let server = Prometheus::start(&[stack.worker.addr(), front.addr()]).await;
    let queries = queries();
    assert!(queries.len() > 30, "{}", queries.len());
    let asked = names(&queries.join(" "));
    for part in ["held_count", "decision_total", "wait_seconds_bucket"] {
        let name = format!("dynamo_frontend_policy_{part}");
        assert!(asked.contains(&name), "{name} is not on the dashboard");
    }
    for query in &queries {
        let start = Instant::now();
        loop {
            let answer = server.query(query).await;
            if answer.iter().any(|(_, value)| value.is_finite()) {
                break;
            }
            assert!(
                start.elapsed() < 4 * LONG,
                "nothing for {query}: {answer:?}"
            );
            sleep(Duration::from_millis(100)).await;
        }
    }
    let rules = std::fs::read_to_string(RULES).unwrap();
    for name in names(&rules) {
        assert!(!server.query(&name).await.is_empty(), "nothing for {name}");
    }
    stop.cancel();
    playing.await.unwrap();
}
