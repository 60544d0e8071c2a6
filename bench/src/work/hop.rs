//! From a release to the moment when the waiter runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::subject::Subject;
use crate::timing::cores;

/// Long enough for the waiter to be asleep when the release comes.
const ASLEEP: Duration = Duration::from_micros(50);

/// `n` hand-overs to a thread parked on core `waiter`, each in nanoseconds from before
/// the release, by the caller's thread, to the waiter's first instruction.
pub fn release_to_thread<S: Subject>(gate: &S, waiter: usize, n: usize) -> Vec<f64> {
    thread::scope(|scope| {
        let (hand, handed) = mpsc::channel::<S::Ticket<'_>>();
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            cores::pin(waiter);
            for ticket in handed {
                let permit = S::wait(ticket);
                let now = Instant::now();
                drop(permit);
                tell.send(now).expect("somebody measures");
            }
        });
        let hops = (0..n).map(|_| {
            let holder = gate.try_admit(None).expect("the last one left");
            let sent = hand.send(gate.request(None).queued());
            assert!(sent.is_ok(), "the waiter has gone");
            thread::sleep(ASLEEP);
            let start = Instant::now();
            drop(holder);
            let hop = told.recv().expect("the waiter tells") - start;
            // Lets a turn that the waiter's own release set off end.
            gate.held();
            hop.as_nanos() as f64
        });
        let hops = hops.collect();
        drop(hand);
        hops
    })
}

/// The same to a task of this runtime, released by a thread outside it.
pub fn release_to_task<S: Subject>(runtime: &Runtime, gate: &'static S, n: usize) -> Vec<f64> {
    let (hand, mut handed) = tokio::sync::mpsc::unbounded_channel::<S::Ticket<'static>>();
    let (tell, told) = mpsc::channel();
    runtime.spawn(async move {
        while let Some(ticket) = handed.recv().await {
            let permit = ticket.await;
            let now = Instant::now();
            drop(permit);
            tell.send(now).expect("somebody measures");
        }
    });
    let hops = (0..n).map(|_| {
        let holder = gate.try_admit(None).expect("the last one left");
        let sent = hand.send(gate.request(None).queued());
        assert!(sent.is_ok(), "the waiter has gone");
        thread::sleep(ASLEEP);
        let start = Instant::now();
        drop(holder);
        let hop = told.recv().expect("the waiter tells") - start;
        gate.held();
        hop.as_nanos() as f64
    });
    hops.collect()
}

/// What two wake-ups in a row cost at least: this thread wakes a relay on core 1, and
/// that wakes the waiter on core 0, each asleep on a word of its own.
pub fn two_futex_hops(n: usize) -> Vec<f64> {
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let [relay, waiter] = &words;
    // The words count rounds, so that a wake-up before the sleep is no loss.
    let sleep_for = |word: &AtomicU32, round: u32| {
        while word.load(Ordering::Acquire) != round {
            atomic_wait::wait(word, round - 1);
        }
    };
    let ring = |word: &AtomicU32, round: u32| {
        word.store(round, Ordering::Release);
        atomic_wait::wake_one(word);
    };
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            cores::pin(1);
            for round in 1..=n as u32 {
                sleep_for(relay, round);
                ring(waiter, round);
            }
        });
        scope.spawn(move || {
            cores::pin(0);
            for round in 1..=n as u32 {
                sleep_for(waiter, round);
                tell.send(Instant::now()).expect("somebody measures");
            }
        });
        let hops = (1..=n as u32).map(|round| {
            thread::sleep(ASLEEP);
            let start = Instant::now();
            ring(relay, round);
            let hop = told.recv().expect("the waiter tells") - start;
            hop.as_nanos() as f64
        });
        hops.collect()
    })
}
