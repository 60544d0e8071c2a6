//! A worker with a policy, over real sockets, before a scripted engine whose state
//! is what the test says.

#[allow(dead_code)]
#[path = "../worker/asking.rs"]
mod asking;
mod deciding;
mod page;
#[path = "../program/mod.rs"]
mod program;
mod progress;
mod reloading;
mod state;
#[path = "../worker/support.rs"]
mod support;
#[path = "../worker/wire.rs"]
mod wire;

use std::time::Duration;

use serde_json::Value;
use tidegate::Settings;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_gateway::scrape::exposition::read;
use tidegate_gateway::worker::WorkerConfig;
use tidegate_policy::file;

use page::Page;
use support::*;

/// Never cold, the whole limit, promises of minutes; gold goes before bronze, which
/// is held for a moment only, and edge not at all.
pub const POLICY: &str = r#"
utilisation_target = 1.0
default_class = "silver"
[state]
sample_interval_ms = 10
stale_after_ms = 500
[cold_start]
idle_ms = 3600000
[[class]]
name = "gold"
priority = 2
first_token_ms = 600000
queue_timeout_ms = 60000
critical = true
[[class]]
name = "silver"
priority = 1
first_token_ms = 600000
queue_timeout_ms = 60000
[[class]]
name = "bronze"
first_token_ms = 600000
queue_timeout_ms = 50
[[class]]
name = "edge"
first_token_ms = 600000
queue_timeout_ms = 0
[api_keys]
"sk-gold" = "gold"
"#;

/// A worker with a policy, and the page of its engine.
pub struct Office {
    /// The worker and its engine.
    pub bench: Bench,
    /// What the engine says of itself.
    pub page: Page,
}

impl Office {
    /// Before an engine whose cache is empty.
    pub async fn start(limits: Settings) -> Self {
        Self::with(limits, |_, _| {}).await
    }

    /// Waits until the policy knows the engine's state.
    pub async fn with(
        limits: Settings,
        change: impl FnOnce(&mut WorkerConfig, &mut PolicyConfig),
    ) -> Self {
        let page = Page::start().await;
        let mut policy = PolicyConfig::new(file::parse(POLICY).unwrap());
        policy.engine_metrics = Some(page.url.clone());
        let bench = Bench::with(limits, &[0], |config| {
            change(config, &mut policy);
            config.policy = Some(policy);
        })
        .await;
        let office = Self { bench, page };
        office.until("policy_state_fresh", "", 1.0).await;
        office
    }

    /// Sends a request of a class.
    pub async fn post(&self, class: &str) -> Wire {
        self.bench
            .post_with(&format!("x-slo-class: {class}\r\n"))
            .await
    }

    /// The value of a series, by its name without prefix and a part of its labels.
    pub async fn metric(&self, name: &str, labels: &str) -> Option<f64> {
        let mut client = self.bench.connect().await;
        client
            .write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        assert_eq!(client.head().await, 200);
        let samples = read(&String::from_utf8(client.body().await).unwrap()).samples;
        let name = format!("dynamo_backend_admission_{name}");
        let series = |sample: &tidegate_gateway::scrape::exposition::Sample| {
            let all = sample.labels.iter();
            let all: Vec<_> = all.map(|(name, value)| format!("{name}={value}")).collect();
            all.join(",")
        };
        let mut found = samples
            .iter()
            .filter(|sample| sample.name == name && series(sample).contains(labels));
        found.next().map(|sample| sample.value)
    }

    /// Waits until the series has this value.
    pub async fn until(&self, name: &str, labels: &str, value: f64) {
        let reached = async {
            while self.metric(name, labels).await != Some(value) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(&format!("{name}{{{labels}}} = {value}"), reached).await;
    }

    /// Waits until so many of a class are held.
    pub async fn held(&self, class: &str, count: u32) {
        let labels = format!("class={class}");
        self.until("policy_held_count", &labels, count.into()).await;
    }

    /// What became of a class's requests.
    pub async fn decided(&self, class: &str, decision: &str, reason: &str) -> Option<f64> {
        let labels = format!("class={class},decision={decision},reason={reason}");
        self.metric("policy_decision_total", &labels).await
    }
}

/// A refusal's `details`, checked to be one of the policy's.
pub async fn refused(client: &mut Wire) -> Value {
    assert_eq!(client.head().await, 529);
    assert!(client.header("x-admission-scope") == Some("class"));
    let body: Value = serde_json::from_slice(&client.body().await).unwrap();
    assert_eq!(body["type"], "Overloaded");
    body["details"].clone()
}
