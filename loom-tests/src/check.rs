//! Runs a model, in the one kind of build where that means something.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Explores `model` with at most `bound` preemptions, and prints how many
/// executions that took. `why` says what is at stake.
///
/// # Panics
/// The model fails; or it has only one execution, so that it shows nothing; or
/// the build is not one for models: it must be optimised, or the bound cannot be
/// afforded, and keep its debug assertions, or the gate's own checks are not there.
pub fn check(bound: usize, why: &str, model: impl Fn() + Send + Sync + 'static) {
    let executions = explore(bound, why, model);
    assert!(executions > 1, "nothing in this model ever meets");
}

/// Explores `model`, whose threads are claimed to share nothing that any of them
/// writes: then the order of their steps makes no difference, and the first
/// execution is the only one.
///
/// # Panics
/// As [`check`], but where there is more than one execution.
pub fn check_apart(bound: usize, why: &str, model: impl Fn() + Send + Sync + 'static) {
    let executions = explore(bound, why, model);
    assert_eq!(executions, 1, "the threads touch something in common");
}

/// Explores a model that takes minutes, if `TIDEGATE_MODELS=all` asks for those.
///
/// # Panics
/// As [`check`].
pub fn check_at_length(bound: usize, why: &str, model: impl Fn() + Send + Sync + 'static) {
    if std::env::var("TIDEGATE_MODELS").is_ok_and(|which| which == "all") {
        check(bound, why, model);
    } else {
        say(&format!("  skipped without TIDEGATE_MODELS=all: {why}\n"));
    }
}

fn explore(bound: usize, why: &str, model: impl Fn() + Send + Sync + 'static) -> u64 {
    assert!(
        cfg!(debug_assertions) && env!("TIDEGATE_LOOM_OPT_LEVEL") != "0",
        "models run optimised with debug assertions: add `--profile loom`"
    );
    // Reads LOOM_MAX_PREEMPTIONS, which may only raise the bound.
    let mut builder = loom::model::Builder::new();
    let bound = builder.preemption_bound.unwrap_or(0).max(bound);
    builder.preemption_bound = Some(bound);
    // A livelock runs into this; a waiter that nobody wakes is a deadlock to loom.
    builder.max_branches = 5_000;
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    let start = std::time::Instant::now();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    let name = std::thread::current();
    let name = name.name().unwrap_or("?");
    let seconds = start.elapsed().as_secs_f32();
    say(&format!(
        "  {executions:>7} executions {seconds:>5.1} s, at most {bound} preemptions: {name}: {why}\n"
    ));
    executions
}

/// Written past the test harness, which hides what passing tests print.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(line.as_bytes());
}
