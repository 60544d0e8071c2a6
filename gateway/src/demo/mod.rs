//! The demo: simulated engines, a worker before each, a frontend before all of
//! them, and a load that is now and then too much, all in one process.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`ports`] | addresses, with a way out when one is taken |
//! | [`stack`] | the servers |
//! | [`view`] | what is printed |

pub mod ports;
pub mod stack;
pub mod view;

use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use crate::cli::failure::Failure;
use crate::cli::live::Status;
use crate::cli::output::print;
use crate::cli::values::{rate, seconds};
use crate::load::{Arrivals, Client, Load, Mix, Target, play};
use stack::Stack;

/// Requests per second of the load, unless another rate is asked for.
const RATE: f64 = 20.0;
/// Seed of the load: one whose first burst comes soon.
const SEED: u64 = 21;

/// Arguments of the demo, with or without the word `demo`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Demo")]
pub struct DemoArgs {
    /// Stop after this many seconds instead of on Ctrl-C.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seconds)]
    pub duration: Option<Duration>,

    /// Mean requests per second of the load, bursts included [default: 20].
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = rate)]
    pub rate: Option<f64>,

    /// Start the servers only, for requests of your own.
    #[arg(long, conflicts_with = "rate")]
    pub no_load: bool,
}

/// Runs the demo until its duration is over or `stop` is cancelled, then stops
/// everything it started and prints what happened.
///
/// # Errors
/// A server that does not start.
pub async fn run(args: DemoArgs, stop: CancellationToken) -> Result<(), Failure> {
    let rate = (!args.no_load).then(|| args.rate.unwrap_or(RATE));
    let stack = Stack::start().await?;
    print(&view::opening(&stack, rate))?;

    let (gates, frontend, target) = (stack.gates(), stack.tallies(), stack.target()?);
    let load = Load::default();
    let tally = || rate.map(|_| load.tally());
    let mut status = Status::new(gates.len() + 2);
    let traffic = traffic(&target, rate, args.duration, &load, &stop);
    tokio::pin!(traffic);
    loop {
        tokio::select! {
            () = &mut traffic => break,
            () = tokio::time::sleep(status.interval()) => {
                status.show(&view::lines(&gates, &frontend, tally().as_ref()));
            }
        }
    }
    status.clear();
    stack.shutdown().await;
    print(&view::summary(&gates, &frontend, tally().as_ref()))?;
    Ok(())
}

/// Keeps the servers busy, or leaves them alone, for as long as the demo runs.
async fn traffic(
    target: &Target,
    rate: Option<f64>,
    duration: Option<Duration>,
    load: &Load,
    stop: &CancellationToken,
) {
    let duration = duration.unwrap_or(Duration::MAX);
    let Some(rate) = rate else {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(duration) => {}
        }
        return;
    };
    let schedule = Arrivals::new(mix(rate), SEED).take_while(|planned| planned.at < duration);
    play(
        schedule,
        std::slice::from_ref(target),
        &Client::new("sim"),
        load,
        stop,
    )
    .await;
}

/// Short bursts and short rests: something to see every few seconds.
fn mix(rate: f64) -> Mix {
    Mix {
        rate,
        burst: 2.6,
        calm_seconds: 2.5,
        burst_seconds: 1.2,
        ranks: (0..stack::RANKS).collect(),
        ranked: 0.5,
        leave: 0.05,
        ..Mix::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seconds_bring_more_than_fits() {
        let early = Arrivals::new(mix(RATE), SEED).take_while(|p| p.at < Duration::from_secs(3));
        let arrivals = u32::try_from(early.count()).expect("a few");
        // What the engines run at once, twice as much queued, and two turnovers of a second.
        assert!(arrivals > stack::TOTAL_SEQS * (1 + 2 + 2), "{arrivals}");
    }
}
