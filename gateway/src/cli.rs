//! The command line of `tidegate`.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`live`] | status lines, in place on a terminal |
//! | [`logging`] | where log lines go, and in which format |
//! | [`stop`] | Ctrl-C and SIGTERM as one token |
//!
//! Exit codes: 0 after a clean stop, 1 when something failed, 2 for a command
//! line that is not understood.

pub mod live;
pub mod logging;
pub mod stop;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::show::{self, ConfigArgs};
use logging::LogFormat;
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
}

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
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Box<dyn Error>> {
    match cli.command {
        Some(Command::Config(args)) => {
            print(&show::render(&args)?)?;
            Ok(())
        }
        None => Ok(()),
    }
}

/// Writes to standard output. A reader that has gone, as in `tidegate config | head`, is no error.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
