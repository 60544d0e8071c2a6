//! A caller that is stopped in the middle of an operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::subject::Subject;
use crate::work::lifecycles;

use super::bystander::while_it_lasts;
use super::{ASIDE, SPAN, Seen};

/// How long it stands still each time.
const STOPPED: Duration = Duration::from_millis(1);

/// A thread does one lifecycle after the other on the bystander's own rank, and
/// every other millisecond a signal stops it for one, wherever it is: nearly
/// always inside an operation.
pub fn preempted<S: Subject>() -> Option<Seen> {
    install();
    let gate = &S::build(2, 256, 256, 8);
    Some(while_it_lasts(gate, ASIDE, || {
        let over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            scope.spawn(move || {
                tell.send(pthread_self()).expect("somebody waits for it");
                // Relaxed: it only has to end some time after.
                while !over.load(Ordering::Relaxed) {
                    lifecycles(gate, ASIDE, 100);
                }
            });
            let victim = told.recv().expect("it tells");
            let start = Instant::now();
            while start.elapsed() < SPAN {
                thread::sleep(2 * STOPPED);
                pthread_kill(victim, Signal::SIGUSR1).expect("it is still there");
            }
            over.store(true, Ordering::Relaxed);
        });
    }))
}

extern "C" fn stand_still(_signal: i32) {
    // One system call, and no more: nothing here may allocate or lock.
    thread::sleep(STOPPED);
}

fn install() {
    let action = SigAction::new(
        SigHandler::Handler(stand_still),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler only sleeps, which is safe at any instruction.
    let installed = unsafe { sigaction(Signal::SIGUSR1, &action) };
    installed.expect("SIGUSR1 can be handled");
}
