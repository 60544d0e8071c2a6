//! The command line of `tidegate`: reads it, and runs the command that it names.
//!
//! Exit codes: 0 after a clean stop, 1 when something failed, 2 for a command
//! line that is not understood.

mod help;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::failure::Failure;
use crate::cli::logging::{self, LogFormat};
use crate::cli::output::print;
use crate::cli::stop;
use crate::config::show::{self, ConfigArgs};
use crate::demo::{self, DemoArgs};
use crate::engine::{self, EngineArgs};
use crate::frontend::{self, FrontendArgs};
use crate::load::{self, command::LoadArgs};
use crate::policy::{self, PolicyArgs};
use crate::simulate::{self, SimulateArgs};
use crate::size::command::{self as sizing, SizeArgs};
use crate::top::{self, TopArgs};
use crate::worker::{self, WorkerArgs};

/// Admission control for inference workers.
///
/// Decides which requests enter an engine, which wait, and which are refused, before
/// they cost the engine anything. Without a command it starts the demo.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = help::PROGRAM)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    demo: DemoArgs,

    /// How log lines look, on standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, help_heading = "Logging")]
    log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run engines, workers, a frontend and traffic here (also what no command does).
    ///
    /// Two simulated engines, the gate before each, a frontend before both, and a bursty
    /// load that is now and then too much for them, so that there is something to queue and
    /// to refuse.
    #[command(after_help = help::DEMO)]
    Demo(DemoArgs),

    /// Put the gate in front of an inference engine.
    ///
    /// Passes everything through and decides, for requests that generate, whether they
    /// enter the engine, wait in the queue, or are refused with status 529.
    #[command(after_help = help::WORKER)]
    Worker(Box<WorkerArgs>),

    /// Send requests to workers, and refuse when all of them have too much to do.
    ///
    /// Stands before any number of workers, or of engines without one. Picks a worker
    /// that serves the model and has room, tries another where one fails or refuses,
    /// and answers status 529 when every one is overloaded.
    #[command(after_help = help::FRONTEND)]
    Frontend(Box<FrontendArgs>),

    /// Show the limits that flags and environment amount to, and where each came from.
    ///
    /// Starts nothing. Takes the limit flags of `tidegate worker` and reads the same
    /// environment; --max-num-seqs and --dp-ranks stand in for the engine's report.
    #[command(after_help = help::CONFIG)]
    Config(ConfigArgs),

    /// Find a limit for the engine's waiting requests, from a worker's metrics.
    ///
    /// Little's law: as many requests wait for their first token, on average, as are
    /// admitted in the time that one waits. Measure a warm worker at the highest steady
    /// load that meets your latency target, with limits so high that nothing queues.
    #[command(after_help = help::SIZE)]
    Size(SizeArgs),

    /// Watch workers and frontends in a terminal.
    ///
    /// The three axes, each rank against its limits, the frontend's workers and why they
    /// are busy, and refusals by reason, from /metrics alone. q leaves.
    #[command(after_help = help::TOP)]
    Top(TopArgs),

    /// Start a simulated inference engine: no GPU, the step times of one.
    ///
    /// It batches, fills a KV cache and streams tokens as a real engine does, behind
    /// OpenAI's routes. For trying things out, and for tests.
    #[command(after_help = help::ENGINE)]
    Engine(EngineArgs),

    /// Send load to a worker, a frontend or an engine: bursty, open-loop, with outcomes counted.
    ///
    /// Requests start when their schedule says, however slow the answers are, and
    /// latencies count from the intended start. Prompt lengths travel in headers that
    /// the simulated engine reads.
    #[command(after_help = help::LOAD)]
    Load(LoadArgs),

    /// Print a policy file with every key and its default, or check one.
    #[command(after_help = help::POLICY)]
    Policy(PolicyArgs),

    /// Simulate a worker in virtual time, from little load to far too much.
    ///
    /// Prints what clients get at each load, with nothing before the engine, with the
    /// gate alone, and with the policy. No port is opened, and the same seed gives
    /// the same figures.
    #[command(after_help = help::SIMULATE)]
    Simulate(SimulateArgs),
}

/// Parses the process's arguments, runs what they ask for, and says how it ended.
pub fn main() -> ExitCode {
    // Prints help, or what was wrong and what is accepted, and exits 0 or 2.
    let cli = Cli::parse();
    logging::start(
        cli.log_format,
        cli.command
            .as_ref()
            .map_or(LevelFilter::WARN, Command::log_level),
    );
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

impl Command {
    /// What is logged unless `RUST_LOG` says otherwise.
    fn log_level(&self) -> LevelFilter {
        match self {
            // It has lines of its own, which say the same.
            Command::Demo(_) => LevelFilter::WARN,
            _ => LevelFilter::INFO,
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    if cli.command.is_some() && cli.demo != DemoArgs::default() {
        let message = "demo flags come without a command, or after `demo`: \
                       see `tidegate --help`";
        return Err(Failure::usage(message));
    }
    match cli.command {
        Some(Command::Config(args)) => {
            print(&show::render(&args).map_err(|error| Failure::usage(&error))?)?;
            Ok(())
        }
        Some(Command::Policy(args)) => {
            print(&policy::run(&args)?)?;
            Ok(())
        }
        Some(Command::Simulate(args)) => {
            print(&simulate::run(&args)?)?;
            Ok(())
        }
        Some(Command::Worker(args)) => with_stop(async |stop| {
            let (listen, admin) = (args.listen, args.admin_listen);
            let ended = worker::run(*args, stop).await;
            ended.map_err(|error| not_listening(listen, admin, &error))
        }),
        Some(Command::Frontend(args)) => with_stop(async |stop| {
            let (listen, admin) = (args.listen, args.admin_listen);
            let ended = frontend::run(*args, stop).await;
            ended.map_err(|error| not_listening(listen, admin, &error))
        }),
        Some(Command::Engine(args)) => with_stop(async |stop| {
            let address = args.listen;
            let ended = engine::run(args, stop).await;
            ended.map_err(|error| Failure::listening(address, "--listen", &error))
        }),
        Some(Command::Size(args)) => with_stop(async |stop| sizing::run(&args, &stop).await),
        Some(Command::Top(args)) => with_stop(async |stop| top::run(&args, &stop).await),
        Some(Command::Load(args)) => with_stop(async |stop| {
            let tally = load::command::run(&args, &stop).await?;
            print(&format!("What became of the requests\n{tally}"))?;
            Ok(())
        }),
        Some(Command::Demo(args)) => with_stop(async |stop| demo::run(args, stop).await),
        None => with_stop(async |stop| demo::run(cli.demo, stop).await),
    }
}

/// What kept a server from starting. The error names the address that it is about.
fn not_listening(listen: SocketAddr, admin: Option<SocketAddr>, error: &io::Error) -> Failure {
    match admin {
        Some(admin) if error.to_string().contains(&admin.to_string()) => {
            Failure::listening(admin, "--admin-listen", error)
        }
        _ => Failure::listening(listen, "--listen", error),
    }
}

/// Runs a command that ends by itself or when Ctrl-C or SIGTERM cancels its token.
fn with_stop(
    command: impl AsyncFnOnce(CancellationToken) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async { command(stop::token()?).await })
}
