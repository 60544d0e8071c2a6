//! The simulator against the live parts, on the same arrivals: a worker with a
//! policy before a simulated engine over HTTP, in real time, and the same in
//! virtual time.
//!
//! The live side needs a machine that keeps up, so this runs when it is asked for:
//! `TIDEGATE_LIVE=60` is for how many seconds. `.ci/live-and-simulated` does that.

mod stack;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use stack::{Stack, simulated};
use tidegate_gateway::load::{Client, Mix, Outcome, Planned, Target};
use tidegate_gateway::policy::PolicyConfig;
use tidegate_gateway::simulate::{Request, Setup, WayIn, Workload, simulate};
use tidegate_policy::file;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

const SLOTS: u32 = 64;
const FIRST_TOKEN_MS: u32 = 1_000;

fn policy() -> Settings {
    let text = format!(
        "[tuner]\nenabled = false\n[[class]]\nname = \"a\"\ncritical = true\n\
         first_token_ms = {FIRST_TOKEN_MS}\n"
    );
    file::parse(&text).expect("a policy")
}

fn requests(rate: f64, seconds: u64) -> Vec<Request> {
    let workload = Workload {
        mix: Mix {
            rate,
            ..Mix::default()
        },
        class_weights: Vec::new(),
        ..Workload::default()
    };
    workload.generate(Duration::from_secs(seconds), 11)
}

/// Answers that kept their promise, in virtual time.
fn simulated_goodput(all: &[Request], seconds: u64) -> u64 {
    let setup = Setup {
        from: Duration::ZERO,
        until: Duration::from_secs(seconds),
        ..Setup::new(simulated(1, SLOTS, 1.0).batch, policy())
    };
    let gate = tidegate::Settings::default();
    let way_in = WayIn::Policy(Box::new(policy()), gate, Mode::Enforce);
    simulate(&setup, &way_in, all).in_all().kept
}

/// The same in real time.
async fn live_goodput(all: &[Request]) -> u64 {
    let stack = Stack::start(simulated(1, SLOTS, 1.0), |config| {
        config.policy = Some(PolicyConfig::new(policy()));
    })
    .await;
    let target: Arc<Target> = Arc::new(stack.worker.url().parse().expect("a target"));
    let client = Client::new("sim").in_full();
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
        sleep_until(start + request.at).await;
        let (client, target) = (client.clone(), Arc::clone(&target));
        sent.spawn(async move {
            let (outcome, first) = client.send(&target, &planned, start + planned.at).await;
            let promise = Duration::from_millis(FIRST_TOKEN_MS.into());
            u64::from(outcome == Outcome::Ok && first.is_some_and(|first| first <= promise))
        });
    }
    sent.join_all().await.iter().sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goodput_is_the_same_within_5_percent() {
    let Some(seconds) = std::env::var_os("TIDEGATE_LIVE") else {
        let note =
            "SKIPPED: set TIDEGATE_LIVE to a number of seconds, or run .ci/live-and-simulated";
        writeln!(std::io::stderr(), "{note}").expect("stderr is writable");
        return;
    };
    let seconds = seconds.to_str().and_then(|text| text.parse().ok());
    let seconds = seconds.expect("TIDEGATE_LIVE is a number of seconds");
    // Below, at and beyond what the engine can do.
    for rate in [5.0, 10.0, 20.0] {
        let all = requests(rate, seconds);
        let simulated = simulated_goodput(&all, seconds);
        let live = live_goodput(&all).await;
        let ratio = live as f64 / simulated as f64;
        let told = format!(
            "{rate}/s for {seconds} s, {} requests: {simulated} kept in virtual time, {live} live, {ratio:.3}",
            all.len()
        );
        writeln!(std::io::stderr(), "{told}").expect("stderr is writable");
        assert!((0.95..=1.05).contains(&ratio), "{told}");
    }
}
