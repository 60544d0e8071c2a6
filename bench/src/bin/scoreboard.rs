//! One command, one table: every claim as a ratio to a peer or a floor that was
//! measured in turn with it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tidegate_bench::ours::{Borrowed, Counting, Dispatched, Owned, OwnedDispatched};
use tidegate_bench::peers::{AsyncLockPair, Floor, MutexGate, PlainMutex, TokioPair, TowerLimit};
use tidegate_bench::score::{self, Machine, Plan};
use tidegate_bench::selfcheck::check;

/// Measures the gate beside its peers and floors, and judges the bars.
#[derive(Parser)]
struct Args {
    /// Fewer and shorter rounds: under three minutes in place of twenty.
    #[arg(long)]
    quick: bool,
    /// Only rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Writes the figures here, for scripts.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the table here as Markdown.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    check_all();
    let watch = Machine::watch();
    let rows = score::all();
    let progress = ProgressBar::new(rows.len() as u64);
    progress.set_style(
        ProgressStyle::with_template("[{elapsed_precise}] {bar:24} {pos}/{len} {msg}")
            .context("the progress line's template")?,
    );
    progress.enable_steady_tick(Duration::from_secs(1));
    let mut outcomes = Vec::new();
    for make in rows {
        let row = make();
        if args
            .only
            .as_ref()
            .is_none_or(|text| row.name.contains(text))
        {
            outcomes.push(score::run(row, &plan, &progress));
        } else {
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let machine = watch.end();
    let table = score::markdown(&machine, &plan, &outcomes);
    print!("{table}");
    if let Some(path) = &args.md {
        fs::write(path, &table).with_context(|| format!("writing {}", path.display()))?;
    }
    if let Some(path) = &args.json {
        let figures = score::json(&machine, &plan, &outcomes);
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// A row must be what it says before it is timed.
fn check_all() {
    check::<Borrowed>();
    check::<Counting>();
    check::<Dispatched>();
    check::<Owned>();
    check::<OwnedDispatched>();
    check::<MutexGate>();
    check::<PlainMutex>();
    check::<TokioPair>();
    check::<AsyncLockPair>();
    check::<TowerLimit>();
    check::<Floor>();
}
