//! Which core a thread runs on.
//!
//! Left alone, the scheduler often puts a thread that was just woken on the core of
//! whoever woke it, and moves it milliseconds later: two threads then share a
//! core although another is idle, and a hand-over costs 4 or 20 µs as it falls out.

use std::sync::OnceLock;
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Keeps this thread, and those that it starts, on one of the cores that the
/// process may use: the index wraps around. Where the system refuses, it stays free.
pub fn pin(index: usize) {
    let cores = allowed();
    let Some(core) = cores.get(index % cores.len().max(1)) else {
        return;
    };
    let mut only = CpuSet::new();
    // What it refuses, the calibration finds.
    let _ = only
        .set(*core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
}

/// Runs this on a thread of its own on that core.
///
/// # Panics
/// `f` does.
pub fn on_core<R: Send>(index: usize, f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let pinned = scope.spawn(move || {
            pin(index);
            f()
        });
        pinned.join().expect("it does not panic")
    })
}

/// The cores that this process could use when it first asked.
fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        (0..CpuSet::count())
            .filter(|core| set.is_set(*core).unwrap_or(false))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_use_one_core() {
        let cores = allowed();
        for index in 0..cores.len() + 1 {
            let own = on_core(index, || sched_getaffinity(Pid::from_raw(0)).unwrap());
            let own: Vec<_> = (0..CpuSet::count())
                .filter(|core| own.is_set(*core).unwrap())
                .collect();
            assert_eq!(own, [cores[index % cores.len()]]);
        }
    }
}
