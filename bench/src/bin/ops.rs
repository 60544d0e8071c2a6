//! One operation, again and again, for tools that count what it does: no clock,
//! no measurement here.
//!
//! `ops count NAME N` does it N times; the cost of one is the difference between
//! two runs over the difference of their N. `ops lines NAME` does it in two
//! phases that should share no written cache line, and says where its marks are.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand, ValueEnum};
use tidegate_bench::ours::{Borrowed, Owned};
use tidegate_bench::peers::{Floor, MutexGate, TokioPair};
use tidegate_bench::subject::{Subject, poll_once};
use tidegate_bench::work::{Line, lifecycles, refusals, refused_requests};

/// Does one thing many times.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The operation's name on each line.
    List,
    /// Does an operation so many times.
    Count {
        /// One of the list.
        name: String,
        /// How often.
        n: usize,
    },
    /// Does a hundred in each of two phases, with marks before, between and after.
    Lines {
        /// What the phases differ in.
        phases: Phases,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Phases {
    /// Direct lifecycles, on one rank and on another.
    TwoRanks,
    /// Direct lifecycles, on one rank and on the same: they share its word.
    SameRank,
    /// Refusals of one full rank, by one thread and by another.
    TwoRefused,
    /// Lifecycles of owned permits, by one thread on one rank and by another on another.
    TwoOwned,
}

/// Its name, and how to do it so many times.
type Operation = (&'static str, fn(usize));

const OPERATIONS: [Operation; 14] = [
    ("floor: 1 CAS, 2 fetch-adds", direct::<Floor>),
    ("direct, ranked", direct::<Borrowed>),
    ("direct, unranked", unranked::<Borrowed>),
    ("direct, owned", direct::<Owned>),
    ("direct, two tokio semaphores", direct::<TokioPair>),
    ("direct, mutex", direct::<MutexGate>),
    ("refusal, one word", one_word::<Borrowed>),
    ("refusal, one word, mutex", one_word::<MutexGate>),
    ("refusal, 8 ranks", eight_ranks::<Borrowed>),
    ("refusal, 8 ranks, mutex", eight_ranks::<MutexGate>),
    (
        "queue and cancel, 100 queued",
        queue_and_cancel::<Borrowed, 100>,
    ),
    (
        "queue and cancel, 40,000 queued",
        queue_and_cancel::<Borrowed, 40_000>,
    ),
    ("release to ticket", release_to_ticket::<Borrowed>),
    ("release to ticket, mutex", release_to_ticket::<MutexGate>),
];

fn main() -> Result<()> {
    match Args::parse().what {
        What::List => {
            for (name, _) in OPERATIONS {
                println!("{name}");
            }
        }
        What::Count { name, n } => {
            let Some((_, operation)) = OPERATIONS.iter().find(|(known, _)| *known == name) else {
                bail!("no operation is called {name:?}; see `ops list`");
            };
            operation(n);
        }
        What::Lines { phases } => lines(phases),
    }
    Ok(())
}

fn direct<S: Subject>(n: usize) {
    lifecycles(&S::build(8, 256, 256, 512), Some(3), n);
}

fn unranked<S: Subject>(n: usize) {
    lifecycles(&S::build(8, 256, 256, 512), None, n);
}

fn one_word<S: Subject>(n: usize) {
    let gate = S::build(8, 1, 1, 1);
    let _held = gate.try_admit(Some(3));
    refusals(&gate, Some(3), n);
}

fn eight_ranks<S: Subject>(n: usize) {
    let gate = S::build(8, 1, 1, 1);
    let _held: Vec<_> = (0..8).map(|rank| gate.try_admit(Some(rank))).collect();
    let _queued: Vec<_> = (0..8).map(|_| gate.request(None).queued()).collect();
    refused_requests(&gate, Some(3), n);
}

fn queue_and_cancel<S: Subject, const QUEUED: u32>(n: usize) {
    Line::new(&S::build(1, 1, 1, QUEUED + 1), QUEUED as usize).queue_and_cancel(n);
}

/// Queue, release, take the offer up: a hand-over without a thread to wake.
fn release_to_ticket<S: Subject>(n: usize) {
    let gate = S::build(1, 1, 1, 1);
    let mut holder = gate.try_admit(None);
    for _ in 0..n {
        let mut ticket = gate.request(black_box(None)).queued();
        drop(holder.take());
        match poll_once(&mut ticket) {
            Poll::Ready(permit) => holder = Some(permit),
            Poll::Pending => unreachable!("the release has handed on"),
        }
    }
}

/// Written before, between and after the phases.
static MARK: AtomicU64 = AtomicU64::new(0);

fn lines(phases: Phases) {
    const N: usize = 100;
    let stack = 0_u8;
    println!(
        "{:x} {:x}",
        MARK.as_ptr() as usize,
        &raw const stack as usize
    );
    let gate = &Borrowed::build(8, 1, 1, 1);
    let mark = || {
        MARK.fetch_add(1, Ordering::SeqCst);
    };
    match phases {
        Phases::TwoRanks | Phases::SameRank => {
            let other = if matches!(phases, Phases::TwoRanks) {
                5
            } else {
                3
            };
            lifecycles(gate, Some(3), 1);
            mark();
            lifecycles(gate, Some(3), N);
            mark();
            lifecycles(gate, Some(other), N);
            mark();
        }
        Phases::TwoRefused => {
            let _held = gate.try_admit(Some(3));
            one_after_the_other([(); 2].map(|()| || refusals(gate, Some(3), N)), mark);
        }
        Phases::TwoOwned => {
            let gate = &Owned::build(8, 1, 1, 1);
            one_after_the_other(
                [3, 5].map(|rank| move || lifecycles(gate, Some(rank), N)),
                mark,
            );
        }
    }
}

/// Each on a thread of its own, with marks before and after.
fn one_after_the_other([first, second]: [impl Fn() + Send; 2], mark: impl Fn() + Sync) {
    // The first stays, so that the second gets a stack of its own.
    let (done, over, mark) = (&Barrier::new(2), &Barrier::new(2), &mark);
    thread::scope(|scope| {
        scope.spawn(move || {
            mark();
            first();
            mark();
            done.wait();
            over.wait();
        });
        done.wait();
        scope.spawn(move || {
            mark();
            second();
            mark();
            over.wait();
        });
    });
}
