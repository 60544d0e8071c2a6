//! From a release to the next in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Runtime};

use crate::ours::{Borrowed, Dispatched};
use crate::peers::{MutexGate, TokioPair};
use crate::subject::Subject;
use crate::timing::cores::{on_core, pin};
use crate::timing::{beside, median};
use crate::work;

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, leaked};

pub(super) const ROWS: &[Make] = &[
    to_thread,
    to_thread_here,
    to_task,
    to_task_here,
    through_the_dispatcher,
    closed_loop_of_8,
    closed_loop_of_64,
];

/// Where the waiter is: the thread that releases is on core 0.
const THERE: usize = 1;
const HERE: usize = 0;

fn to_thread() -> Row {
    Row {
        name: "release to waiting thread, assisted, on another core",
        unit: Unit::Nanoseconds,
        long: false,
        ours: thread_hops::<Borrowed>(THERE),
        peers: vec![
            thread_hops::<MutexGate>(THERE),
            thread_hops::<TokioPair>(THERE),
        ],
        bars: vec![Bar::times(1.75, 0).stretch(1.3)],
        note: "from before the release to the waiter's first instruction; a reading is the median \
               of its hand-overs, each to a waiter that has slept for 50 µs",
    }
}

fn to_thread_here() -> Row {
    Row {
        name: "release to waiting thread, assisted, on the same core",
        ours: thread_hops::<Borrowed>(HERE),
        peers: vec![
            thread_hops::<MutexGate>(HERE),
            thread_hops::<TokioPair>(HERE),
        ],
        note: "as above; the waiter runs once the releaser sleeps",
        ..to_thread()
    }
}

fn to_task() -> Row {
    task(
        "release to tokio task, assisted, on another core",
        THERE,
        "as above, to a runtime of one worker; released from outside it",
    )
}

fn to_task_here() -> Row {
    task(
        "release to tokio task, assisted, on the same core",
        HERE,
        "as above; the worker runs once the releaser sleeps",
    )
}

fn task(name: &'static str, worker: usize, note: &'static str) -> Row {
    let runtime = runtime([worker]);
    Row {
        name,
        ours: task_hops::<Borrowed>(&runtime),
        peers: vec![
            task_hops::<MutexGate>(&runtime),
            task_hops::<TokioPair>(&runtime),
        ],
        bars: vec![Bar::times(1.1, 0).stretch(1.0)],
        note,
        ..to_thread()
    }
}

fn through_the_dispatcher() -> Row {
    let floor = Contender::new("two raw futex hops", |plan| {
        beside(|| on_core(HERE, || median(&mut work::two_futex_hops(plan.hops))))
    });
    Row {
        name: "release to waiting thread, dispatcher thread",
        ours: thread_hops::<Dispatched>(HERE),
        peers: vec![floor],
        bars: vec![Bar::times(1.1, 0)],
        note: "as above; to the dispatcher's thread on another core and back, as the raw hops go",
        ..to_thread()
    }
}

fn closed_loop_of_8() -> Row {
    closed_loop("closed loop, 256 tasks, limit 8", 8)
}

fn closed_loop_of_64() -> Row {
    closed_loop("closed loop, 256 tasks, limit 64", 64)
}

fn closed_loop(name: &'static str, limit: u32) -> Row {
    let runtime = runtime([HERE, THERE]);
    Row {
        name,
        unit: Unit::Nanoseconds,
        long: false,
        ours: crowd::<Borrowed>(&runtime, limit),
        peers: vec![
            crowd::<MutexGate>(&runtime, limit),
            crowd::<TokioPair>(&runtime, limit),
        ],
        bars: vec![Bar::times(1.0, 0), Bar::wish(1.0, 1)],
        note: "two workers; enter or wait, yield once, first token, release; R = W; time over requests",
    }
}

fn thread_hops<S: Subject>(waiter: usize) -> Contender {
    // Its dispatcher thread is where it was built.
    let gate = on_core(THERE, || S::build(1, 1, 1, 1));
    Contender::new(S::NAME, move |plan| {
        let hops = || median(&mut work::release_to_thread(&gate, waiter, plan.hops));
        beside(|| on_core(HERE, hops))
    })
}

fn task_hops<S: Subject>(runtime: &Arc<Runtime>) -> Contender {
    let gate: &'static S = on_core(THERE, || leaked(1, 1, 1, 1));
    let runtime = Arc::clone(runtime);
    Contender::new(S::NAME, move |plan| {
        let hops = || median(&mut work::release_to_task(&runtime, gate, plan.hops));
        beside(|| on_core(HERE, hops))
    })
}

fn crowd<S: Subject>(runtime: &Arc<Runtime>, limit: u32) -> Contender {
    const TASKS: usize = 256;
    let gate: &'static S = leaked(1, limit, limit, TASKS as u32);
    let runtime = Arc::clone(runtime);
    Contender::new(S::NAME, move |plan| {
        // About a microsecond each.
        let each = (plan.span.as_micros() as usize / TASKS).max(1);
        beside(|| work::closed_loop(&runtime, gate, TASKS, each))
    })
}

/// One worker on each of these cores.
fn runtime<const N: usize>(workers: [usize; N]) -> Arc<Runtime> {
    let next = AtomicUsize::new(0);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(N).enable_time();
    builder.on_thread_start(move || {
        // Relaxed: any order will do.
        let started = next.fetch_add(1, Ordering::Relaxed);
        pin(workers[started % N]);
    });
    Arc::new(builder.build().expect("threads can be started"))
}
