//! `tidegate simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_policy::file;
use tidegate_policy::shadow::Mode;

use super::sweep::{Length, Point, sweep};
use super::way_in::WayIn;
use super::workload::Workload;
use super::world::Setup;
use super::{plot, table, trace};
use crate::cli::failure::Failure;
use crate::cli::live::Status;
use crate::cli::values::{rate, seconds};
use crate::engine::batch::BatchConfig;
use crate::policy;
use crate::policy::args::PolicyMode;

/// Requests that arrive in the first seconds are not counted: the engine fills.
const WARM_UP: Duration = Duration::from_secs(30);

/// How long requests arrive after that, if nothing else is said.
const DURATION: Duration = Duration::from_secs(300);

/// Arguments of `tidegate simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateArgs {
    /// The policy; without it the one that `tidegate policy init` prints.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// Whether the policy decides, or only watches.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PolicyMode::Enforce)]
    policy_mode: PolicyMode,

    /// Lengths and arrivals from a recorded trace, as fast as each load asks:
    /// TIMESTAMP,ContextTokens,GeneratedTokens lines, or Mooncake's .jsonl.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Offered loads, as multiples of what the engine can sustain.
    #[arg(long, value_name = "X,...", value_delimiter = ',', value_parser = rate,
          default_value = "0.2,0.5,0.8,1,1.5,2,3,4")]
    loads: Vec<f64>,

    /// What stands before the engine.
    #[arg(
        long,
        value_name = "WAY,...",
        value_enum,
        value_delimiter = ',',
        default_value = "open,gate,policy"
    )]
    ways: Vec<Way>,

    /// How long requests arrive after half a minute of warming up, in seconds. Left
    /// out, it is 300, and a trace comes by once at each load.
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = seconds)]
    duration: Option<Duration>,

    /// Sequences that the engine runs at once.
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_num_seqs: u32,

    /// Draw the goodput as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Seed: the same one gives the same figures.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Nothing.
    Open,
    /// The gate, its limits following the engine's size.
    Gate,
    /// The policy before the gate.
    Policy,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Open => "no gate",
            Way::Gate => "the gate alone",
            Way::Policy => "with the policy",
        }
    }
}

/// Simulates, shows how far it is, draws the plot and returns the figures as text.
///
/// # Errors
/// The policy or the trace cannot be used, or the plot cannot be written.
pub fn run(args: &SimulateArgs) -> Result<String, Failure> {
    let policy = match &args.policy {
        Some(path) => policy::read::read(path)?,
        None => file::parse(file::DEFAULT)?,
    };
    let workload = match &args.trace {
        Some(path) => Workload::default().replaying(trace::read(path)?),
        None => Workload::default(),
    };
    let engine = BatchConfig {
        max_num_seqs: args.max_num_seqs,
        ..BatchConfig::default()
    };
    let setup = Setup {
        from: WARM_UP,
        until: WARM_UP.saturating_add(args.duration.unwrap_or(DURATION)),
        ..Setup::new(engine, policy.clone())
    };
    let length = match args.duration {
        None => Length::Recording,
        Some(_) => Length::Fixed,
    };
    let mode = match args.policy_mode {
        PolicyMode::Enforce => Mode::Enforce,
        PolicyMode::Observe => Mode::Observe,
    };
    // What nobody sets follows the engine's size.
    let gate = tidegate::Settings::default();
    let (mut text, mut lines) = (String::new(), Vec::new());
    let mut status = Status::new(1);
    for way in &args.ways {
        let way_in = match way {
            Way::Open => WayIn::Open,
            Way::Gate => WayIn::Gate(gate),
            Way::Policy => WayIn::Policy(Box::new(policy.clone()), gate, mode),
        };
        let told = |point: &Point| {
            let goodput = point.report.in_all().goodput();
            let line = format!("{}: load {} gives {goodput:.2}/s", way.name(), point.load);
            status.show(&[line]);
        };
        let (loads, seed) = (&args.loads, args.seed);
        let points = sweep(&setup, &way_in, &workload, loads, length, seed, told);
        text += &format!("{}\n{}", way.name(), table::HEADING);
        for point in &points {
            text += &table::lines(point);
            if *way == Way::Policy && mode == Mode::Observe {
                text += &table::observed(point);
            }
        }
        text.push('\n');
        lines.push((way.name(), points));
    }
    status.clear();
    if let Some(path) = &args.plot {
        plot::goodput(path, &lines)?;
        text += &format!("Goodput is drawn in {}\n", path.display());
    }
    Ok(text)
}
