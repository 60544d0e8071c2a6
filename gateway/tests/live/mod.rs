//! Requests of a simulation, sent to a worker with a policy before a simulated engine
//! over HTTP, in real time.
//!
//! That needs a machine that keeps up, so whoever uses this runs when it is asked for:
//! `TIDEGATE_LIVE=60` is for how many seconds. `.ci/live-and-simulated` does that.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::load::{Client, Outcome, Planned, Target};
use tidegate_gateway::policy::PolicyConfig;
use tidegate_gateway::simulate::Request;
use tidegate_policy::settings::Settings;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::stack::{Stack, simulated};

/// Sequences that the engine runs at once.
pub const SLOTS: u32 = 64;

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its class, by its place among the policy's.
    pub class: usize,
    /// When it came.
    pub at: Duration,
    /// How.
    pub outcome: Outcome,
    /// The time to its first token, if it had one.
    pub first_token: Option<Duration>,
    /// The time until it was over.
    pub took: Duration,
}

/// For how many seconds requests are to come; `None`, and a word of it, where nobody asked.
pub fn seconds() -> Option<u64> {
    let Some(seconds) = std::env::var_os("TIDEGATE_LIVE") else {
        say("SKIPPED: set TIDEGATE_LIVE to a number of seconds, or run .ci/live-and-simulated");
        return None;
    };
    let seconds = seconds.to_str().and_then(|text| text.parse().ok());
    Some(seconds.expect("TIDEGATE_LIVE is a number of seconds"))
}

/// Says something even where tests are quiet.
pub fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("stderr is writable");
}

/// Sends them all, each at its time, and waits for them.
pub async fn live(policy: Settings, all: &[Request]) -> Vec<Ended> {
    live_on(1.0, policy, all).await
}

/// The same with a share of the engine: of its places, its cache and its speed.
pub async fn live_on(share: f64, policy: Settings, all: &[Request]) -> Vec<Ended> {
    let names: Vec<String> = policy
        .classes
        .all()
        .iter()
        .map(|c| c.name.clone())
        .collect();
    let of = |whole: u32| (f64::from(whole) * share) as u32;
    let mut engine = simulated(1, of(SLOTS), share);
    engine.batch.kv_blocks = of(engine.batch.kv_blocks);
    let stack = Stack::start(engine, |config| {
        config.policy = Some(PolicyConfig::new(policy));
    })
    .await;
    let target: Arc<Target> = Arc::new(stack.worker.url().parse().expect("a target"));
    let client = Client::new("sim").in_full();
    let clients: Vec<Client> = names
        .iter()
        .map(|name| client.clone().of_class(name))
        .collect();
    let mut sent = JoinSet::new();
    // The policy knows the state by then.
    let start = Instant::now() + Duration::from_millis(500);
    for request in all {
        let planned = Planned {
            at: request.at,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            rank: None,
            leaves_after: None,
        };
        let intended = start + request.at;
        sleep_until(intended).await;
        let class = request.class.0;
        let (client, target) = (clients[class].clone(), Arc::clone(&target));
        sent.spawn(async move {
            let (outcome, first_token) = client.send(&target, &planned, intended).await;
            let took = intended.elapsed();
            Ended {
                class,
                at: planned.at,
                outcome,
                first_token,
                took,
            }
        });
    }
    sent.join_all().await
}
