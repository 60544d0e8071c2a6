//! 40,000 queued requests leave at once while one caller of another rank enters
//! and ends in a loop: how long that caller was held up.
//!
//! `cargo run --release -p tidegate-bench --bin storm [-- QUEUED]`. The longest
//! pause of one call is often what the operating system did, not what a gate did:
//! so rounds in which the caller was preempted do not count where there are
//! others, each gate is told beside rounds in which nobody leaves, and figures
//! are medians over the rounds that count.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_bench::peers::mutex_gate::MutexGate;
use tidegate_bench::subject::{Borrowed, Subject};

const ROUNDS: usize = 25;

/// One round, as the caller saw it.
#[derive(Clone, Copy)]
struct Seen {
    /// How long the others took to leave.
    leaving: Duration,
    calls: u64,
    longest: Duration,
    /// How often the caller was taken off its processor for somebody else.
    preempted: u64,
    /// Calls that took longer than 100 microseconds, together.
    held_up: Duration,
}

fn main() {
    let queued = std::env::args().nth(1).map_or(40_000, |number| {
        number.parse().unwrap_or_else(|_| {
            eprintln!("storm: '{number}' is not a number of queued requests");
            std::process::exit(2);
        })
    });
    println!("{queued} queued requests leave\n");
    println!(
        "| gate | rounds | leaving, ms | calls meanwhile | longest pause, µs | paused over 100 µs, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let tidegate = rounds::<Borrowed>(queued);
    let mutex = rounds::<MutexGate>(queued);
    let ratio = |of: fn(&Seen) -> Duration| {
        of(&mutex).as_secs_f64() / of(&tidegate).as_secs_f64().max(1e-9)
    };
    println!(
        "\nmutex / tidegate: longest pause {:.1}, leaving {:.0}",
        ratio(|seen| seen.longest),
        ratio(|seen| seen.leaving)
    );
}

/// Prints the rows of one gate: with the storm, and without.
fn rounds<S: Subject>(queued: usize) -> Seen {
    let storm = row(S::NAME, || round::<S>(queued, None));
    let name = format!("{}, nobody leaves", S::NAME);
    row(&name, || round::<S>(queued, Some(storm.leaving)));
    storm
}

fn row(name: &str, round: impl FnMut() -> Seen) -> Seen {
    let mut all: Vec<_> = std::iter::repeat_with(round).take(ROUNDS).collect();
    let mut what = "all preempted";
    if all.iter().any(|seen| seen.preempted == 0) {
        all.retain(|seen| seen.preempted == 0);
        what = "undisturbed";
    }
    let seen = medians(&all);
    println!(
        "| {name} | {} of {ROUNDS}, {what} | {:.1} | {} | {:.1} | {:.1} |",
        all.len(),
        seen.leaving.as_secs_f64() * 1e3,
        seen.calls,
        seen.longest.as_secs_f64() * 1e6,
        seen.held_up.as_secs_f64() * 1e3,
    );
    seen
}

/// All leave; or nobody does, for so long.
fn round<S: Subject>(queued: usize, quiet: Option<Duration>) -> Seen {
    let gate = S::build(2, 64, 64, queued as u32);
    let full: Vec<_> = (0..64).map(|_| gate.try_admit(Some(0))).collect();
    assert!(full.iter().all(Option::is_some), "rank 0 is taken");
    let mut tickets: Vec<_> = (0..queued)
        .map(|_| gate.request(Some(0)).queued())
        .collect();
    shuffle(&mut tickets);
    let (started, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        let caller = scope.spawn(|| call(&gate, &started, &over));
        while !started.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let start = Instant::now();
        let kept = match quiet {
            None => {
                drop(tickets);
                None
            }
            Some(time) => {
                thread::sleep(time);
                Some(tickets)
            }
        };
        let leaving = start.elapsed();
        over.store(true, Ordering::Release);
        let seen = caller.join().expect("the caller does not panic");
        drop(kept);
        Seen { leaving, ..seen }
    });
    drop(full);
    seen
}

/// Clients leave in no order.
fn shuffle<T>(all: &mut [T]) {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for i in (1..all.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        all.swap(i, random as usize % (i + 1));
    }
}

fn call<S: Subject>(gate: &S, started: &AtomicBool, over: &AtomicBool) -> Seen {
    let mut seen = Seen {
        leaving: Duration::ZERO,
        calls: 0,
        longest: Duration::ZERO,
        held_up: Duration::ZERO,
        preempted: 0,
    };
    let preempted = preemptions();
    started.store(true, Ordering::Release);
    let mut before = Instant::now();
    while !over.load(Ordering::Acquire) {
        let permit = gate.try_admit(Some(1));
        assert!(permit.is_some(), "rank 1 is free");
        drop(black_box(permit));
        let now = Instant::now();
        let pause = now - before;
        before = now;
        seen.calls += 1;
        seen.longest = seen.longest.max(pause);
        if pause > Duration::from_micros(100) {
            seen.held_up += pause;
        }
    }
    seen.preempted = preemptions() - preempted;
    seen
}

/// How often this thread was preempted so far; 0 where that is not told.
fn preemptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Of each figure by itself.
fn medians(rounds: &[Seen]) -> Seen {
    Seen {
        leaving: median(rounds, |seen| seen.leaving),
        calls: median(rounds, |seen| seen.calls),
        longest: median(rounds, |seen| seen.longest),
        held_up: median(rounds, |seen| seen.held_up),
        preempted: median(rounds, |seen| seen.preempted),
    }
}

fn median<T: Ord + Copy>(rounds: &[Seen], of: impl Fn(&Seen) -> T) -> T {
    let mut all: Vec<_> = rounds.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}
