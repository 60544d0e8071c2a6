//! The command line of `tidegate`.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`failure`] | why a command ended badly, and the exit code |
//! | [`live`] | status lines, in place on a terminal |
//! | [`logging`] | where log lines go, and in which format |
//! | [`stop`] | Ctrl-C and SIGTERM as one token |
//! | [`values`] | values that several commands take |
//!
//! Exit codes: 0 after a clean stop, 1 when something failed, 2 for a command
//! line that is not understood.

pub mod failure;
pub mod live;
pub mod logging;
pub mod stop;
pub mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::show::{self, ConfigArgs};
use crate::engine::{self, EngineArgs};
use crate::load::{self, command::LoadArgs};
use failure::Failure;
use logging::LogFormat;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;

const AFTER_HELP: &str = "\
Start here:
  tidegate                       engines, workers and traffic on this machine; Ctrl-C stops them
  tidegate worker --help         the gate in front of an engine of your own
  tidegate config --help         which limits would be in force, and why

RUST_LOG chooses what is logged, such as RUST_LOG=debug or RUST_LOG=tidegate_gateway=trace.";

/// Admission control for inference workers.
///
/// Decides which requests enter an engine, which wait, and which are refused, before
/// they cost the engine anything. Without a command it starts the demo.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// How log lines look, on standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the limits that flags and environment amount to, and where each came from.
    ///
    /// Starts nothing. Takes the limit flags of `tidegate worker` and reads the same
    /// environment; --max-num-seqs and --dp-ranks stand in for the engine's report.
    #[command(after_help = CONFIG_HELP)]
    Config(ConfigArgs),

    /// Start a simulated inference engine: no GPU, the step times of one.
    ///
    /// It batches, fills a KV cache and streams tokens as a real engine does, behind
    /// OpenAI's routes. For trying things out, and for tests.
    #[command(after_help = ENGINE_HELP)]
    Engine(EngineArgs),

    /// Send load to a worker, a frontend or an engine: bursty, open-loop, with outcomes counted.
    ///
    /// Requests start when their schedule says, however slow the answers are, and
    /// latencies count from the intended start. Prompt lengths travel in headers that
    /// the simulated engine reads.
    #[command(after_help = LOAD_HELP)]
    Load(LoadArgs),
}

const ENGINE_HELP: &str = "\
Example:
  tidegate engine --listen 127.0.0.1:8000 --max-num-seqs 16
  tidegate worker --engine-url http://127.0.0.1:8000

Next: `tidegate worker --help` for the gate in front, `tidegate load --help` for traffic.";

const LOAD_HELP: &str = "\
Examples:
  tidegate load --url http://127.0.0.1:8100 --rate 20 --duration 30
  tidegate load --url http://127.0.0.1:8100 --trace trace.csv --speed 4 --clients-leave 0.1";

const CONFIG_HELP: &str = "\
Example:
  tidegate config --dp-ranks 0-7 --max-num-seqs 256 --request-queue-limit 64

Next: `tidegate worker --help`, which takes the same limits.";

/// Parses the process's arguments, runs what they ask for, and says how it ended.
pub fn main() -> ExitCode {
    // Prints help, or what was wrong and what is accepted, and exits 0 or 2.
    let cli = Cli::parse();
    logging::start(cli.log_format, LevelFilter::INFO);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Some(Command::Config(args)) => {
            print(&show::render(&args)?)?;
            Ok(())
        }
        Some(Command::Engine(args)) => with_stop(async |stop| {
            let address = args.listen;
            let ended = engine::run(args, stop).await;
            ended.map_err(|error| Failure::listening(address, &error))
        }),
        Some(Command::Load(args)) => with_stop(async |stop| {
            let tally = load::command::run(&args, &stop).await?;
            print(&format!("What became of the requests\n{tally}"))?;
            Ok(())
        }),
        None => Ok(()),
    }
}

/// Runs a command that ends by itself or when Ctrl-C or SIGTERM cancels its token.
fn with_stop(
    command: impl AsyncFnOnce(CancellationToken) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async { command(stop::token()?).await })
}

/// Writes to standard output. A reader that has gone, as in `tidegate config | head`, is no error.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
