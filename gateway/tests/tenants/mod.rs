//! Tenants that share an engine: their policy, and what they ask for.

use std::time::Duration;

use tidegate_gateway::simulate::{Request, Workload};
use tidegate_policy::class::ClassId;
use tidegate_policy::file;
use tidegate_policy::settings::Settings;

/// A policy from its file's text.
pub fn policy(text: &str) -> Settings {
    file::parse(text).expect("a policy file")
}

/// Two tenants of one priority, a quiet one of this weight and a flood of 1, held for as
/// long as it takes to be backlogged.
pub fn tenants(weight: u32) -> Settings {
    policy(&format!(
        "[tuner]\nenabled = false\n[fairness]\nby = \"requests\"\n\
         [[class]]\nname = \"quiet\"\nweight = {weight}\nfirst_token_ms = 20000\n\
         queue_share = 0.9\nqueue_timeout_ms = 4000\ncritical = true\n\
         [[class]]\nname = \"flood\"\nfirst_token_ms = 20000\n\
         queue_share = 0.9\nqueue_timeout_ms = 4000\ncritical = true\n"
    ))
}

/// The same without kept room, and without credit.
pub fn by_order_alone(policy: Settings) -> Settings {
    Settings {
        credit: Duration::ZERO,
        keep_room: Duration::ZERO,
        ..policy
    }
}

/// Requests of one class at a mean rate, in bursts, for so many seconds.
pub fn of_class(class: usize, rate: f64, seconds: u64, seed: u64) -> Vec<Request> {
    let workload = Workload {
        class_weights: Vec::new(),
        ..Workload::default()
    };
    let mut all = workload
        .at_rate(rate)
        .generate(Duration::from_secs(seconds), seed);
    all.iter_mut()
        .for_each(|request| request.class = ClassId(class));
    all
}

/// All of them, in order of time.
pub fn together(all: &[Vec<Request>]) -> Vec<Request> {
    let mut all = all.concat();
    all.sort_by_key(|request| request.at);
    all
}
