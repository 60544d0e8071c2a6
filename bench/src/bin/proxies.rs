//! What one hop costs: `tidegate worker` and `tidegate frontend` beside nginx, before the
//! same backend, in one run. `.ci/versus-nginx` builds and fetches what this needs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use tidegate_bench::proxies::kind::{Kind, Pace};
use tidegate_bench::proxies::proxy::{Make, Programs, Proxy};
use tidegate_bench::proxies::rounds::Plan;
use tidegate_bench::proxies::{backend, report, rounds};
use tidegate_bench::score::Machine;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Measures requests per second of processor time, and added latency, beside nginx.
#[derive(Parser)]
struct Args {
    /// Three short rounds.
    #[arg(long)]
    quick: bool,
    /// Which of ours; each is measured beside nginx and no proxy.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "worker")]
    of: Vec<Ours>,
    /// nginx's program.
    #[arg(long, value_name = "PROGRAM", default_value = "nginx")]
    nginx: PathBuf,
    /// tidegate's program.
    #[arg(
        long,
        value_name = "PROGRAM",
        default_value = "target/release/tidegate"
    )]
    tidegate: PathBuf,
    /// Processes of nginx, and threads of tidegate, that work.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// How long one reading takes, in milliseconds. Processor time comes in steps of 10.
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    span: u64,
    /// Connections that ask at once.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=200))]
    connections: u16,
    /// Tokens of a stream.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tokens: u32,
    /// Milliseconds from one token to the next.
    #[arg(long, value_name = "MS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    between: u64,
    /// A further argument of `tidegate frontend`; may be repeated.
    #[arg(
        long = "frontend-arg",
        value_name = "ARGUMENT",
        allow_hyphen_values = true
    )]
    frontend_args: Vec<String>,
    /// Let the proxies write to standard error.
    #[arg(long)]
    loud: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ours {
    Worker,
    Frontend,
}

fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.quick {
        (args.rounds, args.span) = (3, 500);
    }
    let watch = Machine::watch();
    // The backend has a thread of its own, so that clients do not hold it up.
    let behind = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let pace = Pace {
        tokens: args.tokens,
        between: Duration::from_millis(args.between),
    };
    let backend = behind.block_on(backend::start(pace))?;
    let before = Builder::new_current_thread().enable_all().build()?;
    let folder = std::env::temp_dir().join(format!("tidegate-proxies-{}", std::process::id()));
    let programs = Programs {
        nginx: args.nginx,
        tidegate: args.tidegate,
        threads: args.threads,
        frontend_args: args.frontend_args,
        loud: args.loud,
        folder: folder.clone(),
    };
    let plan = Plan {
        rounds: args.rounds,
        span: Duration::from_millis(args.span),
        connections: args.connections.into(),
    };
    let mut makes = vec![Make::Direct, Make::Nginx];
    for (ours, make) in [
        (Ours::Worker, Make::Worker),
        (Ours::Worker, Make::WorkerKept),
        (Ours::Frontend, Make::Frontend),
    ] {
        if args.of.contains(&ours) {
            makes.push(make);
        }
    }
    let measured = before.block_on(until_stopped(async {
        let mut proxies = Vec::new();
        for make in makes {
            proxies.push(Proxy::start(make, &programs, backend).await?);
        }
        let readings = plan.rounds as usize * Kind::ALL.len() * proxies.len();
        let progress = ProgressBar::new(readings as u64);
        progress.set_style(ProgressStyle::with_template(
            "[{elapsed_precise}] {bar:24} {pos}/{len} readings",
        )?);
        let measured = rounds::run(&proxies, plan, || progress.inc(1)).await;
        progress.finish_and_clear();
        measured
    }));
    // Only what nginx wrote there.
    let _ = std::fs::remove_dir_all(&folder);
    let measured = measured?;
    println!(
        "{} {} rounds; readings of {} ms; {} connections; streams of {} tokens, {} ms apart; \
         each proxy on {} {}.\n\n{}",
        watch.end(),
        plan.rounds,
        args.span,
        plan.connections,
        pace.tokens,
        args.between,
        args.threads,
        if args.threads == 1 {
            "thread"
        } else {
            "threads"
        },
        report::markdown(&measured)
    );
    Ok(())
}

/// Ends the proxies, too, when this program is told to end.
async fn until_stopped<T>(measuring: impl Future<Output = Result<T>>) -> Result<T> {
    let mut ended = signal(SignalKind::terminate())?;
    tokio::select! {
        measured = measuring => measured,
        _ = tokio::signal::ctrl_c() => bail!("stopped"),
        _ = ended.recv() => bail!("stopped"),
    }
}
