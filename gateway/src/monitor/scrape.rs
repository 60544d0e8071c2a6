//! A worker's metrics page, read now and then for as long as it is watched.

use std::time::Duration;

use rand::Rng;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::member::Member;
use super::page;
use super::sample::Source;
use crate::scrape::page::{Fetch, PageError};

/// How long a page may take: as long as the interval, from 1 s up to this.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The longest pause after failures, unless the interval is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Reads the page of `member` every `interval`, and less and less often while it
/// fails. Runs for ever; cancel safe.
pub(super) async fn run(member: Member, page: Fetch, interval: Duration) {
    let answer_time = interval.clamp(Duration::from_secs(1), ANSWER_TIME);
    let block_size = member.0.settings.block_size;
    let mut failures = 0;
    loop {
        let asked = Instant::now();
        match page.text(answer_time).await {
            Ok(text) => {
                if failures > 0 {
                    info!(
                        worker = member.id(),
                        "the worker's metrics page is read again"
                    );
                }
                failures = 0;
                // A page of megabytes would hold up the requests on this thread.
                let reading = spawn_blocking(move || page::read(&text, block_size)).await;
                if let Ok(reading) = reading {
                    // What it says is no older than the question.
                    member.observe(Source::Scrape, &reading, asked);
                }
            }
            Err(error) => {
                failed(&member, &error, failures);
                failures = failures.saturating_add(1);
            }
        }
        let until = asked + pause(interval, failures);
        tokio::time::sleep_until(until).await;
    }
}

fn failed(member: &Member, error: &PageError, failures: u32) {
    let mut state = member.0.state();
    state.failed_scrapes = state.failed_scrapes.saturating_add(1);
    drop(state);
    if failures == 0 {
        warn!(worker = member.id(), %error, "the worker's metrics page is not read");
    } else {
        debug!(worker = member.id(), %error, failures, "the worker's metrics page is not read");
    }
}

/// The time from one question to the next: a tenth more or less than the interval,
/// so that many workers are not asked at once; doubled with each failure.
fn pause(interval: Duration, failures: u32) -> Duration {
    let longest = LONGEST_PAUSE.max(interval);
    let doubled = interval.saturating_mul(1 << failures.min(16)).min(longest);
    doubled.mul_f64(rand::rng().random_range(0.9..=1.1))
}
