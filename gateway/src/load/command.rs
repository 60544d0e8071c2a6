//! `tidegate load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::arrivals::{Arrivals, Mix};
use super::client::{Client, Target};
use super::planned::Planned;
use super::run::{Load, play};
use super::tally::Tally;
use super::trace::{TraceError, read_trace};
use crate::cli::live::Status;
use crate::cli::values::{rate, seconds, share};

/// Arguments of `tidegate load`.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Where to send requests; given more than once, they take turns.
    #[arg(long = "url", value_name = "URL", required = true)]
    pub urls: Vec<Target>,

    /// Mean requests per second of the generated load. Bursts and rests of seconds
    /// make it up, so that a run of less than a minute may be off.
    #[arg(long, value_name = "R", allow_negative_numbers = true, default_value = "10", value_parser = rate)]
    pub rate: f64,

    /// How long requests start, in seconds; a trace stops here too. Endless without it.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seconds)]
    pub duration: Option<Duration>,

    /// Replay a recorded trace instead: TIMESTAMP,ContextTokens,GeneratedTokens lines.
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub trace: Option<PathBuf>,

    /// Replay this many times as fast as recorded.
    #[arg(long, value_name = "X", allow_negative_numbers = true, default_value = "1", requires = "trace", value_parser = rate)]
    pub speed: f64,

    /// Share of clients that leave after about a second, 0 to 1.
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, default_value = "0", value_parser = share)]
    pub clients_leave: f64,

    /// Ranks that half of the requests name, such as 0-7.
    #[arg(long, value_name = "RANKS", allow_negative_numbers = true)]
    pub dp_ranks: Option<crate::config::Ranks>,

    /// Send prompts in full, four bytes for a token, for servers that look at them
    /// (a policy, a frontend). Otherwise their lengths travel in headers alone.
    #[arg(long)]
    pub full_prompts: bool,

    /// Model that requests ask for.
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub model: String,

    /// Seed of the generated load: the same one sends the same requests.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 1
    )]
    pub seed: u64,
}

impl LoadArgs {
    /// The requests to send.
    ///
    /// # Errors
    /// A trace that cannot be read.
    fn schedule(&self) -> Result<Box<dyn Iterator<Item = Planned> + Send>, TraceError> {
        let mix = Mix {
            rate: self.rate,
            leave: self.clients_leave,
            ranked: 0.5,
            ranks: self
                .dp_ranks
                .as_ref()
                .map_or(Vec::new(), |ranks| ranks.0.clone()),
            ..Mix::default()
        };
        let until = self.duration.unwrap_or(Duration::MAX);
        let generated = Arrivals::new(mix, self.seed);
        let all: Box<dyn Iterator<Item = Planned> + Send> = match &self.trace {
            None => Box::new(generated),
            // Times and sizes from the trace, ranks and leavers from the generator.
            Some(file) => Box::new(
                read_trace(file, self.speed)?
                    .into_iter()
                    .zip(generated)
                    .map(|(row, drawn)| Planned {
                        rank: drawn.rank,
                        leaves_after: drawn.leaves_after,
                        ..row
                    }),
            ),
        };
        Ok(Box::new(all.take_while(move |planned| planned.at < until)))
    }
}

/// Sends the load, shows how it goes, and returns what became of it.
///
/// # Errors
/// A trace that cannot be read.
pub async fn run(args: &LoadArgs, stop: &CancellationToken) -> Result<Tally, TraceError> {
    let schedule = args.schedule()?;
    let load = Load::default();
    let client = Client::new(&args.model);
    let client = match args.full_prompts {
        true => client.in_full(),
        false => client,
    };
    let mut status = Status::new(1);
    let playing = play(schedule, &args.urls, &client, &load, stop);
    tokio::pin!(playing);
    loop {
        tokio::select! {
            () = &mut playing => break,
            () = tokio::time::sleep(status.interval()) => status.show(&[load.tally().line()]),
        }
    }
    status.clear();
    Ok(load.tally())
}
