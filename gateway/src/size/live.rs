//! Readings from a worker's `/metrics`, taken for a while.

use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::little::size;
use super::reading::{Reading, ReadingError, reading};
use super::unusable::Unusable;
use crate::cli::live::Status;
use crate::scrape::exposition::read;
use crate::scrape::page::{Fetch, PageError};

/// How long the worker may take to answer once.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// After so many failures on end, the worker is given up.
const MOST_FAILURES: u32 = 3;

/// Why there are no readings.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The page was not read.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The page is not a worker's.
    #[error("{0}: {1}")]
    Reading(String, ReadingError),
    /// An answer that a Prometheus server does not give.
    #[error("{0}: {1}")]
    Prometheus(String, String),
}

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The whole time.
    pub interval: Duration,
    /// The time from one reading to the next.
    pub every: Duration,
    /// What the metrics' names begin with.
    pub prefix: &'a str,
    /// The rank asked for.
    pub rank: Option<u32>,
}

/// Takes readings until the time is over, `stop` is cancelled, or it is clear
/// that the window will not be usable. Shows how it goes.
///
/// # Errors
/// A first reading that fails, or several later ones on end.
pub async fn measure(
    page: &Fetch,
    url: &str,
    plan: &Plan<'_>,
    stop: &CancellationToken,
) -> Result<Vec<Reading>, SourceError> {
    let start = Instant::now();
    let mut clock = interval(plan.every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut status = Status::new(1);
    let mut shown = None;
    let mut readings = Vec::new();
    let mut failures = 0;
    loop {
        tokio::select! {
            _ = clock.tick() => {}
            () = stop.cancelled() => break,
        }
        match one(page, url, plan.prefix, start).await {
            Ok(reading) => {
                readings.push(reading);
                failures = 0;
            }
            Err(error) => {
                failures += 1;
                if readings.is_empty() || failures == MOST_FAILURES {
                    return Err(error);
                }
                warn!(%error, "a reading is missing");
            }
        }
        if size(&readings, plan.rank).is_err_and(|why| why.is_final())
            || start.elapsed() >= plan.interval
        {
            break;
        }
        if shown.is_none_or(|last: Instant| last.elapsed() >= status.interval()) {
            shown = Some(Instant::now());
            status.show(&[progress(&readings, start.elapsed(), plan)]);
        }
    }
    status.clear();
    Ok(readings)
}

/// One reading, said to be of the middle of the time that it took.
async fn one(
    page: &Fetch,
    url: &str,
    prefix: &str,
    start: Instant,
) -> Result<Reading, SourceError> {
    let asked = start.elapsed();
    let text = page.text(ANSWER_TIME).await?;
    let at = (asked + start.elapsed()) / 2;
    let samples = read(&text).samples;
    reading(at, &samples, prefix).map_err(|error| SourceError::Reading(url.to_owned(), error))
}

/// How it goes, in one line.
fn progress(readings: &[Reading], passed: Duration, plan: &Plan<'_>) -> String {
    let so_far = match size(readings, plan.rank) {
        Ok(so_far) => format!(
            "waiting {:.2} at {:.1} requests/s",
            so_far.waiting, so_far.rate
        ),
        Err(Unusable::FewAdmissions(admitted)) => format!("{admitted} admitted"),
        Err(_) => "beginning".to_owned(),
    };
    let (passed, whole) = (passed.as_secs_f64(), plan.interval.as_secs_f64());
    format!(
        "measuring  {passed:.0} of {whole:.0} s  {} readings  {so_far}",
        readings.len()
    )
}
