//! From a release to the next in the queue.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::ours::{Borrowed, Dispatched};
use crate::peers::{MutexGate, TokioPair};
use crate::subject::Subject;
use crate::timing::{beside, median};
use crate::work;

use super::super::{Bar, Contender, Row, Unit};
use super::{Make, leaked};

pub(super) const ROWS: &[Make] = &[
    to_thread,
    to_task,
    through_the_dispatcher,
    closed_loop_of_8,
    closed_loop_of_64,
];

fn to_thread() -> Row {
    Row {
        name: "release to waiting thread, assisted",
        unit: Unit::Nanoseconds,
        long: false,
        ours: thread_hops::<Borrowed>(),
        peers: vec![thread_hops::<MutexGate>(), thread_hops::<TokioPair>()],
        bars: vec![Bar::times(1.75, 0).stretch(1.3)],
        note: "from before the release to the waiter's first instruction; a reading is the median \
               of its hand-overs",
    }
}

fn to_task() -> Row {
    let runtime = runtime(1);
    Row {
        name: "release to tokio task, assisted",
        ours: task_hops::<Borrowed>(&runtime),
        peers: vec![
            task_hops::<MutexGate>(&runtime),
            task_hops::<TokioPair>(&runtime),
        ],
        bars: vec![Bar::times(1.1, 0).stretch(1.0)],
        note: "as above, to a runtime of one worker; released from outside it",
        ..to_thread()
    }
}

fn through_the_dispatcher() -> Row {
    let floor = Contender::new("two raw futex hops", |plan| {
        beside(|| median(&mut work::two_futex_hops(plan.hops)))
    });
    Row {
        name: "release to waiting thread, dispatcher thread",
        ours: thread_hops::<Dispatched>(),
        peers: vec![floor],
        bars: vec![Bar::times(1.1, 0)],
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
    let runtime = runtime(2);
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

fn thread_hops<S: Subject>() -> Contender {
    let gate = S::build(1, 1, 1, 1);
    Contender::new(S::NAME, move |plan| {
        beside(|| median(&mut work::release_to_thread(&gate, plan.hops)))
    })
}

fn task_hops<S: Subject>(runtime: &Arc<Runtime>) -> Contender {
    let gate: &'static S = leaked(1, 1, 1, 1);
    let runtime = Arc::clone(runtime);
    Contender::new(S::NAME, move |plan| {
        beside(|| median(&mut work::release_to_task(&runtime, gate, plan.hops)))
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

fn runtime(workers: usize) -> Arc<Runtime> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(workers).enable_time().build();
    Arc::new(built.expect("threads can be started"))
}
