//! The simulator against the live parts, on the same arrivals: a worker with a
//! policy before a simulated engine over HTTP, in real time, and the same in
//! virtual time.

mod live;
mod stack;

use std::time::Duration;

use live::{SLOTS, live, say, seconds};
use stack::simulated;
use tidegate_gateway::load::{Mix, Outcome};
use tidegate_gateway::simulate::{Request, Setup, WayIn, Workload, simulate};
use tidegate_policy::file;
use tidegate_policy::settings::Settings;
use tidegate_policy::shadow::Mode;

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
    let promise = Duration::from_millis(FIRST_TOKEN_MS.into());
    let ended = live(policy(), all).await.into_iter();
    let in_time = ended.filter(|ended| {
        ended.outcome == Outcome::Ok && ended.first_token.is_some_and(|first| first <= promise)
    });
    in_time.count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goodput_is_the_same_within_5_percent() {
    let Some(seconds) = seconds() else { return };
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
        say(&told);
        assert!((0.95..=1.05).contains(&ratio), "{told}");
    }
}
