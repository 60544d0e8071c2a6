//! The command: flags, measurement, answer.

use std::time::Duration;

use clap::{ArgGroup, Args};
use tokio_util::sync::CancellationToken;

use super::answer;
use super::little::size;
use super::live::{Plan, SourceError, measure};
use super::stored;
use super::unusable::Unusable;
use crate::cli::failure::Failure;
use crate::cli::output::print;
use crate::cli::values::seconds;
use crate::scrape::page::{Fetch, PageUrl};
use crate::worker::prefix::parse_prefix;

/// Arguments of `tidegate size`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("source").required(true))]
pub struct SizeArgs {
    /// A worker's metrics, to be read from now on.
    #[arg(long, value_name = "URL", group = "source")]
    pub metrics_url: Option<PageUrl>,

    /// A Prometheus server that scrapes the worker, to be asked for what it has stored.
    #[arg(long, value_name = "URL", group = "source")]
    pub prometheus_url: Option<PageUrl>,

    /// Which worker, for --prometheus-url: a label and its value, such as
    /// instance="127.0.0.1:8100". May be repeated.
    #[arg(long = "match", value_name = "MATCHER", conflicts_with = "metrics_url")]
    pub matchers: Vec<String>,

    /// Seconds to measure: from now on, or, for --prometheus-url, until now.
    #[arg(long, value_name = "SECONDS", default_value = "60s", allow_negative_numbers = true, value_parser = seconds)]
    pub interval: Duration,

    /// Seconds from one reading to the next, for --metrics-url.
    #[arg(long, value_name = "SECONDS", default_value = "0.25", allow_negative_numbers = true, value_parser = seconds)]
    pub every: Duration,

    /// The data-parallel rank to look at. Left out, it is the one with the most waiting.
    #[arg(long, value_name = "RANK", allow_negative_numbers = true)]
    pub rank: Option<u32>,

    /// What the metrics' names begin with, as the worker has it.
    #[arg(long, value_name = "PREFIX", default_value = tidegate::metrics::PREFIX, value_parser = parse_prefix)]
    pub metrics_prefix: String,

    /// Print JSON instead of words, also when the window is not usable.
    #[arg(long)]
    pub json: bool,
}

/// Measures and answers. Cancelling `stop` ends the measurement early.
///
/// # Errors
/// No readings, or a window that is not usable.
pub async fn run(args: &SizeArgs, stop: &CancellationToken) -> Result<(), Failure> {
    if args.metrics_url.is_some() && args.every >= args.interval {
        return Err(Failure::usage("--every must be shorter than --interval"));
    }
    let plan = Plan {
        interval: args.interval,
        every: args.every,
        prefix: &args.metrics_prefix,
        rank: args.rank,
    };
    let readings = match (&args.metrics_url, &args.prometheus_url) {
        (Some(url), _) => {
            let page = Fetch::new(url.clone())?;
            measure(&page, &url.to_string(), &plan, stop).await?
        }
        (None, Some(url)) => stored(url, args, &plan, stop).await?,
        (None, None) => {
            return Err(Failure::usage(
                "--metrics-url or --prometheus-url is needed",
            ));
        }
    };
    match size(&readings, args.rank) {
        Ok(sizing) if args.json => print(&format!("{:#}\n", answer::json(&sizing)))?,
        Ok(sizing) => print(&answer::words(&sizing))?,
        Err(why) => {
            if args.json {
                print(&format!("{:#}\n", answer::refusal_json(&why)))?;
            }
            return Err(refused(&why));
        }
    }
    Ok(())
}

async fn stored(
    url: &PageUrl,
    args: &SizeArgs,
    plan: &Plan<'_>,
    stop: &CancellationToken,
) -> Result<Vec<super::Reading>, SourceError> {
    let asked = stored::fetch(url, &args.matchers, plan);
    stop.run_until_cancelled(asked)
        .await
        .unwrap_or(Ok(Vec::new()))
}

fn refused(why: &Unusable) -> Failure {
    Failure::from(NotUsable(why.clone()))
}

/// A refusal, as the command's failure.
#[derive(Debug, thiserror::Error)]
#[error("no limit follows from this measurement: {0}")]
struct NotUsable(Unusable);
