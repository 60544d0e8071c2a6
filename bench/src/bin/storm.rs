//! 40,000 queued requests leave at once while one caller of another rank enters
//! and ends in a loop: how long that caller was held up.
//!
//! `cargo run --release -p tidegate-bench --bin storm [-- QUEUED]`. The longest
//! pause of one call is what the operating system did at least as often as what
//! a gate did, so each round is told beside one in which nobody leaves, and the
//! ratio is of medians over the rounds.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_bench::peers::mutex_gate::MutexGate;
use tidegate_bench::subject::{Borrowed, Subject};

const ROUNDS: usize = 7;

/// One round, as the caller saw it.
#[derive(Clone, Copy)]
struct Seen {
    /// How long the others took to leave.
    leaving: Duration,
    calls: u64,
    longest: Duration,
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
    println!("{queued} queued requests leave; medians of {ROUNDS} rounds\n");
    println!(
        "| gate | leaving, ms | calls meanwhile | longest pause, µs | paused over 100 µs, ms |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let tidegate = rounds::<Borrowed>(queued);
    let mutex = rounds::<MutexGate>(queued);
    let ratio = |of: fn(&Seen) -> Duration| {
        of(&mutex).as_secs_f64() / of(&tidegate).as_secs_f64().max(1e-9)
    };
    println!(
        "\nmutex / tidegate: longest pause {:.0}, leaving {:.0}",
        ratio(|seen| seen.longest),
        ratio(|seen| seen.leaving)
    );
}

/// Prints the rows of one gate: with the storm, and without.
fn rounds<S: Subject>(queued: usize) -> Seen {
    let seen: Vec<_> = (0..ROUNDS).map(|_| round::<S>(queued, None)).collect();
    let storm = medians(&seen);
    row(S::NAME, &storm);
    let quiet: Vec<_> = (0..ROUNDS)
        .map(|_| round::<S>(queued, Some(storm.leaving)))
        .collect();
    row(&format!("{}, nobody leaves", S::NAME), &medians(&quiet));
    storm
}

fn row(name: &str, seen: &Seen) {
    println!(
        "| {name} | {:.1} | {} | {:.1} | {:.1} |",
        seen.leaving.as_secs_f64() * 1e3,
        seen.calls,
        seen.longest.as_secs_f64() * 1e6,
        seen.held_up.as_secs_f64() * 1e3,
    );
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
    };
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
    seen
}

/// Of each figure by itself.
fn medians(rounds: &[Seen]) -> Seen {
    Seen {
        leaving: median(rounds, |seen| seen.leaving),
        calls: median(rounds, |seen| seen.calls),
        longest: median(rounds, |seen| seen.longest),
        held_up: median(rounds, |seen| seen.held_up),
    }
}

fn median<T: Ord + Copy>(rounds: &[Seen], of: impl Fn(&Seen) -> T) -> T {
    let mut all: Vec<_> = rounds.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}
