//! Waiting for a gate, never for longer than a test may take.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::time::Duration;

use tidegate::{Gate, Settings, Snapshot};
use tokio::time::{Instant, sleep, timeout};

/// What is waited for at most. Only a test that fails takes this long.
pub const LONG: Duration = Duration::from_secs(5);

/// Fails the test instead of hanging it.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LONG, future)
        .await
        .unwrap_or_else(|_| panic!("not within {LONG:?}: {what}"))
}

/// Limits per rank: running, waiting, queued.
pub fn limits(running: u32, waiting: u32, queued: u32) -> Settings {
    Settings {
        engine_request_limit: Some(running),
        engine_request_waiting_limit: Some(waiting),
        request_queue_limit: Some(queued),
    }
}

/// Waits until the gate looks so.
pub async fn until(gate: &Gate, what: &str, reached: impl Fn(&Snapshot) -> bool) {
    let start = Instant::now();
    loop {
        let seen = gate.snapshot();
        if reached(&seen) {
            return;
        }
        let late = start.elapsed() > LONG;
        assert!(!late, "never: {what}; the gate has {seen:?}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Waits for running, waiting and queued requests in the whole worker.
pub async fn holds(gate: &Gate, running: u64, waiting: u64, queued: u64) {
    let what = format!("{running} running, {waiting} waiting, {queued} queued");
    until(gate, &what, |seen| {
        let worker = seen.worker;
        (worker.running, worker.waiting, worker.queued) == (running, waiting, queued)
    })
    .await;
}
