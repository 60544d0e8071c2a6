//! Tails under open-loop load: a table, `.hgrm` files and plots of ours beside
//! the peers, from light load to four times what the engine can serve.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tidegate_bench::latency::{self, Panel, Shape, Tally};
use tidegate_bench::ours::{Borrowed, Dispatched};
use tidegate_bench::peers::{Floor, MutexGate, TokioPair};
use tidegate_bench::score::Machine;
use tidegate_bench::subject::Subject;
use tokio::runtime::{Builder, Runtime};

/// Measures latency from the intended start, by percentile.
#[derive(Parser)]
struct Args {
    /// One short round of each.
    #[arg(long)]
    quick: bool,
    /// Where the files go.
    #[arg(long, value_name = "FOLDER", default_value = "target/latency")]
    out: PathBuf,
    /// Rounds of each, in turn; their histograms are merged.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// How long requests arrive in one round, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    milliseconds: u64,
}

const LOADS: [f64; 4] = [0.5, 0.9, 1.5, 4.0];

/// Who calls: a name, how many, how long a request runs.
const CALLERS: [(&str, u32, Duration); 4] = [
    ("2 threads", 2, Duration::from_millis(1)),
    ("8 threads", 8, Duration::from_millis(2)),
    ("64 threads", 64, Duration::from_millis(4)),
    ("tokio tasks", 128, Duration::from_millis(4)),
];

/// A subject on threads and as tasks.
type Run = fn(&Runtime, &Shape, bool) -> Tally;

const SUBJECTS: [(&str, Run); 5] = [
    (Borrowed::NAME, run::<Borrowed>),
    (Dispatched::NAME, run::<Dispatched>),
    (MutexGate::NAME, run::<MutexGate>),
    (TokioPair::NAME, run::<TokioPair>),
    // What the schedule itself costs: sleeping, waking, spawning.
    ("no gate", run::<Floor>),
];

fn run<S: Subject>(runtime: &Runtime, shape: &Shape, as_tasks: bool) -> Tally {
    if as_tasks {
        latency::tasks::<S>(runtime, shape)
    } else {
        latency::threads::<S>(shape)
    }
}

fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.quick {
        (args.rounds, args.milliseconds) = (1, 300);
    }
    fs::create_dir_all(&args.out).with_context(|| format!("making {}", args.out.display()))?;
    let watch = Machine::watch();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    let progress = ProgressBar::new((CALLERS.len() * LOADS.len()) as u64);
    progress.set_style(ProgressStyle::with_template(
        "[{elapsed_precise}] {bar:24} {pos}/{len} {msg}",
    )?);
    progress.enable_steady_tick(Duration::from_secs(1));
    let mut table = String::from(HEAD);
    for (callers, count, service) in CALLERS {
        let mut measured = Vec::new();
        for load in LOADS {
            progress.set_message(format!("{callers} at load {load}"));
            let shape = Shape {
                callers: count,
                load,
                span: Duration::from_millis(args.milliseconds),
                service,
                seed: 1,
            };
            let rows = measure(&runtime, &shape, callers == "tokio tasks", args.rounds);
            for row in &rows {
                table += &line(callers, load, row);
            }
            measured.push((load, rows));
            progress.inc(1);
        }
        tell(&args.out, callers, &measured)?;
    }
    progress.finish_and_clear();
    let machine = watch.end();
    let told = format!(
        "{machine} {} rounds of {} ms.\n\n{table}",
        args.rounds, args.milliseconds
    );
    print!("{told}");
    fs::write(args.out.join("latency.md"), told)?;
    Ok(())
}

/// What one subject saw: all rounds merged, and p99.9 of each by itself.
struct Seen {
    name: &'static str,
    all: Tally,
    tails: Vec<f64>,
}

fn measure(runtime: &Runtime, shape: &Shape, as_tasks: bool, rounds: u64) -> Vec<Seen> {
    let mut seen: Vec<_> = SUBJECTS
        .iter()
        .map(|(name, _)| Seen {
            name,
            all: Tally::default(),
            tails: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        // All subjects meet the same schedule.
        let shape = Shape {
            seed: 1 + 1_000 * round,
            ..*shape
        };
        for (seen, (_, run)) in seen.iter_mut().zip(SUBJECTS) {
            let tally = run(runtime, &shape, as_tasks);
            seen.all.merge(&tally);
            seen.tails.push(latency::quantiles(&tally.admitted)[3]);
        }
    }
    seen
}

const HEAD: &str = "Microseconds from the intended start to the permit; in italics, to the refusal.\n\n\
    | callers | load | subject | admitted | refused | cancelled | p50 | p90 | p99 | p99.9 | p99.99 \
    | max | p99.9 by round |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- \
    | --- | --- |\n";

fn line(callers: &str, load: f64, seen: &Seen) -> String {
    let cells = |values: [f64; 6]| values.map(|value| format!("{value:.0}")).join(" | ");
    let low = seen.tails.iter().copied().fold(f64::INFINITY, f64::min);
    let high = seen.tails.iter().copied().fold(0.0, f64::max);
    let mut line = format!(
        "| {callers} | {load} | {} | {} | {} | {} | {} | {low:.0} to {high:.0} |\n",
        seen.name,
        seen.all.admitted.len(),
        seen.all.refused.len(),
        seen.all.cancelled.len(),
        cells(latency::quantiles(&seen.all.admitted)),
    );
    if !seen.all.refused.is_empty() {
        let refused = cells(latency::quantiles(&seen.all.refused));
        line += &format!("| | | *its refusals* | | | | {refused} | |\n");
    }
    line
}

/// The histograms and the plots of one kind of caller.
fn tell(out: &Path, callers: &str, measured: &[(f64, Vec<Seen>)]) -> Result<()> {
    let file = callers.replace(' ', "-");
    for (load, rows) in measured {
        for row in rows {
            let subject = row
                .name
                .replace(", ", "-")
                .replace(" + ", "-")
                .replace(' ', "-");
            for (kind, histogram) in [
                ("admitted", &row.all.admitted),
                ("refused", &row.all.refused),
            ] {
                if !histogram.is_empty() {
                    let name = format!("{file}.load-{load}.{subject}.{kind}.hgrm");
                    let mut to = BufWriter::new(File::create(out.join(name))?);
                    latency::write_hgrm(histogram, &mut to)?;
                }
            }
        }
    }
    let panels: Vec<_> = measured
        .iter()
        .map(|(load, rows)| Panel {
            title: format!("load {load}"),
            lines: rows
                .iter()
                .map(|row| (row.name, &row.all.admitted))
                .collect(),
        })
        .collect();
    let title = format!("From the intended start to the permit: {callers}");
    latency::grid(&out.join(format!("{file}.svg")), &title, &panels)
}
