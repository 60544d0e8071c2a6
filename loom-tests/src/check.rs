//! Runs a model, in the one kind of build where that means something.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Explores `model` with at most `bound` preemptions, and prints how many
/// executions that took. `why` says what is at stake.
///
/// # Panics
/// The model fails, or the build is not one for models: it must be optimised,
/// or the bound cannot be afforded, and keep its debug assertions, or the
/// gate's own checks are not there.
pub fn check(bound: usize, why: &str, model: impl Fn() + Send + Sync + 'static) {
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
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    // Written past the test harness, which hides what passing tests print.
    let line = format!("  {executions:>7} executions, at most {bound} preemptions: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
