//! Storms, and what a bystander sees of them: the time of each of its lifecycles
//! on a rank that has room, ours beside the mutex.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tidegate_bench::ours::{Borrowed, Dispatched};
use tidegate_bench::peers::MutexGate;
use tidegate_bench::score::Machine;
use tidegate_bench::storm::{self, Seen};
use tidegate_bench::subject::Subject;
use tidegate_bench::timing::{median, spin};

/// Measures what others see of a storm.
#[derive(Parser)]
struct Args {
    /// Three rounds of each in place of fifteen.
    #[arg(long)]
    quick: bool,
}

/// The same storm for each subject.
macro_rules! runs {
    ($storm:ident) => {
        [
            (Borrowed::NAME, storm::$storm::<Borrowed>),
            (Dispatched::NAME, storm::$storm::<Dispatched>),
            (MutexGate::NAME, storm::$storm::<MutexGate>),
        ]
    };
}

/// One subject in one storm; `None` where it cannot be in it.
type Run = fn() -> Option<Seen>;

const STORMS: [(&str, [(&str, Run); 3]); 5] = [
    ("none", runs!(calm)),
    ("40,000 leave at once", runs!(all_leave)),
    ("limits shrink and grow", runs!(limits_move)),
    ("10 times the load for 100 ms", runs!(burst)),
    (
        "a caller stopped for 1 ms, again and again",
        runs!(preempted),
    ),
];

fn main() -> Result<()> {
    let args = Args::parse();
    let rounds = if args.quick { 3 } else { 15 };
    let watch = Machine::watch();
    let progress = ProgressBar::new(STORMS.len() as u64);
    progress.set_style(ProgressStyle::with_template(
        "[{elapsed_precise}] {bar:24} {pos}/{len} {msg}",
    )?);
    progress.enable_steady_tick(Duration::from_secs(1));
    let mut table = String::from(HEAD);
    for (name, subjects) in STORMS {
        progress.set_message(name);
        let mut merged = subjects.map(|(subject, _)| (subject, Seen::default(), Vec::new()));
        for _ in 0..rounds {
            for ((_, run), (_, all, longest)) in subjects.iter().zip(&mut merged) {
                if let Some(seen) = with_both_cores(*run) {
                    longest.push(seen.lifecycles.max() as f64 / 1e3);
                    all.merge(&seen);
                }
            }
        }
        for (subject, all, longest) in merged {
            table += &line(name, subject, &all, longest);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let machine = watch.end();
    println!("{machine} {rounds} rounds.\n\n{table}");
    Ok(())
}

/// Tries until two threads found two cores before and after, six times at most.
fn with_both_cores(run: Run) -> Option<Seen> {
    let mut seen = None;
    for _ in 0..6 {
        let before = spin::both_cores(1);
        seen = run();
        if before + spin::both_cores(1) == 2.0 {
            break;
        }
    }
    seen
}

const HEAD: &str = "Microseconds of a bystander's lifecycle, the clock's 0.03 included.\n\n\
    | storm | subject | lifecycles | refused | p50 | p99 | p99.9 | p99.99 | max | max of a round, \
    median |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

fn line(storm: &str, subject: &str, seen: &Seen, mut longest: Vec<f64>) -> String {
    if longest.is_empty() {
        return String::new();
    }
    let at = |quantile| seen.lifecycles.value_at_quantile(quantile) as f64 / 1e3;
    format!(
        "| {storm} | {subject} | {} | {} | {:.2} | {:.2} | {:.2} | {:.1} | {:.0} | {:.0} |\n",
        seen.lifecycles.len(),
        seen.refused,
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0),
        median(&mut longest),
    )
}
