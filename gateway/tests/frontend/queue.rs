//! A frontend with a policy, and its one worker.
//!
//! The worker has room for one prompt that is still read, so that who goes in next is
//! seen by whom it is called for.

use serde_json::Value;
use tidegate_gateway::frontend::FrontendConfig;
use tidegate_gateway::policy::PolicyConfig;
use tidegate_policy::file;

use super::support::*;

/// Gold goes before silver and copper, which share 3 to 1; bronze is held for a moment
/// only, and edge not at all.
pub const POLICY: &str = r#"
default_class = "silver"
[fairness]
by = "requests"
[state]
sample_interval_ms = 20
[[class]]
name = "gold"
priority = 2
first_token_ms = 600000
queue_timeout_ms = 60000
[[class]]
name = "silver"
priority = 1
weight = 3
first_token_ms = 600000
queue_timeout_ms = 60000
[[class]]
name = "copper"
priority = 1
first_token_ms = 600000
queue_timeout_ms = 60000
[[class]]
name = "bronze"
first_token_ms = 600000
queue_timeout_ms = 200
[[class]]
name = "edge"
first_token_ms = 600000
queue_timeout_ms = 0
[api_keys]
"sk-gold" = "gold"
"#;

pub fn policy() -> Option<PolicyConfig> {
    Some(PolicyConfig::new(file::parse(POLICY).unwrap()))
}

/// One prompt at a time, and the policy.
fn one_by_one(config: &mut FrontendConfig) {
    config.monitor.thresholds.active_prefill_tokens = Some(100);
    config.policy = policy();
}

/// A request of a class that fills a worker until it is answered.
fn long(class: &str, who: &str) -> String {
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(4000));
    post_of(&body, &format!("x-slo-class: {class}\r\nx-who: {who}\r\n"))
}

/// A frontend, and its one worker.
pub struct Queue {
    pub front: Front,
    pub worker: Scripted,
}

impl Queue {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut FrontendConfig)) -> Self {
        let worker = Scripted::start().await;
        let front = Front::with(&[&worker], |config| {
            one_by_one(config);
            change(config);
        })
        .await;
        Self { front, worker }
    }

    pub async fn post(&self, class: &str, who: &str) -> Wire {
        self.front.send(long(class, who)).await
    }

    /// A request that the worker has, and its call.
    pub async fn running(&mut self) -> (Wire, Wire) {
        let client = self.post("gold", "first").await;
        let mut call = self.worker.call().await;
        call.body().await;
        (client, call)
    }

    /// Sends a request, and waits until it is held with so many of its class.
    pub async fn held(&self, class: &str, who: &str, count: u32) -> Wire {
        let client = self.post(class, who).await;
        self.holds(class, count).await;
        client
    }

    pub async fn holds(&self, class: &str, count: u32) {
        holds_of(&self.front, class, count).await;
    }

    /// Answers the next call, and says for whom it was.
    pub async fn serves(&mut self) -> String {
        let mut call = self.worker.call().await;
        let who = call.header("x-who").unwrap_or_default().to_owned();
        call.body().await;
        call.write(JSON).await;
        who
    }
}

pub async fn holds_of(front: &Front, class: &str, count: u32) {
    let series = format!("dynamo_frontend_policy_held_count{{class=\"{class}\",model=\"m\"}}");
    front.measures(&series, count.into()).await;
}

/// How many requests of a class were so decided about.
pub async fn decided(front: &Front, class: &str, decision: &str, reason: &str) -> f64 {
    let series = format!(
        "dynamo_frontend_policy_decision_total{{class=\"{class}\",decision=\"{decision}\",\
         reason=\"{reason}\",model=\"m\"}}"
    );
    let (_, page) = front.get("/metrics").await;
    value(&page, &series).unwrap_or_else(|| panic!("{series}: {page}"))
}

/// Asserts a refusal of the class, and gives its `details`.
pub async fn refused(client: &mut Wire) -> Value {
    let body = assert_overloaded(client, 529).await;
    assert_eq!(client.header("x-admission-scope"), Some("class"));
    assert_eq!(body["details"]["scope"], "class");
    body["details"].clone()
}
