//! Stops a thread before its k-th atomic step, for every k.

pub mod others;
pub mod scenes;

use std::sync::mpsc;
use std::thread;

use tidegate::stall::{Step, hooked};
use tidegate::{Dispatch, Gate, Permit, Ticket};

use crate::common::{PATIENCE, report, settings};
use scenes::Scene;

/// Who drains the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Thread,
    Assisted,
    /// Whoever calls `settle`: the turn itself is an operation to be stopped.
    Manual,
}

impl Mode {
    fn dispatch(self) -> Dispatch {
        match self {
            Mode::Thread => Dispatch::Thread,
            Mode::Assisted => Dispatch::Assisted,
            Mode::Manual => Dispatch::Manual,
        }
    }

    /// The scenes that only this mode has.
    pub fn more(self) -> &'static [(&'static str, Scene)] {
        match self {
            Mode::Manual => scenes::TURNS,
            _ => &[],
        }
    }
}

/// What is done with what an operation left, once everybody else has gone.
pub type Rest<'g> = Box<dyn FnOnce() + Send + 'g>;

/// What is set up before thread A begins its operation.
pub struct Stage<'g> {
    pub operation: Box<dyn FnOnce() -> Rest<'g> + Send + 'g>,
    /// What the others hold.
    pub permits: Vec<Permit<'g>>,
    pub tickets: Vec<Ticket<'g>>,
}

/// Ranks, engine request limit, waiting limit and queue limit of every scene.
pub const RANKS: u32 = 2;
pub const R: u32 = 2;
pub const W: u32 = 2;
pub const Q: u32 = 2;

/// Plays a scene for every k until the operation ends before it: how many steps
/// it took. What went wrong is added to `broken`.
pub fn play(mode: Mode, name: &str, scene: Scene, broken: &mut Vec<String>) -> usize {
    for k in 0.. {
        let gate = Gate::builder()
            .settings(settings(R, W, Q))
            .dispatch(mode.dispatch())
            .build()
            .unwrap();
        gate.report_engine(report(0..RANKS, None)).unwrap();
        gate.settle();
        match stop_at(&gate, mode, k, scene) {
            Ok(true) => {}
            Ok(false) => return k,
            Err((step, what)) => broken.push(format!(
                "{mode:?}, {name}, stopped before step {k} ({:?} at {}): {what}",
                step.kind, step.at
            )),
        }
        crate::common::idle_check(&gate);
    }
    unreachable!("operations end")
}

/// False if the operation ended before its k-th step.
fn stop_at(gate: &Gate, mode: Mode, k: usize, scene: Scene) -> Result<bool, (Step, String)> {
    let Stage {
        operation,
        permits,
        tickets,
    } = scene(gate);
    let (stopped, told) = mpsc::channel::<Option<Step>>();
    let (go_on, gone_on) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let ended = stopped.clone();
            let mut steps = 0;
            let hook = move |step| {
                if steps == k {
                    stopped.send(Some(step)).unwrap();
                    gone_on.recv().unwrap();
                }
                steps += 1;
            };
            let rest = hooked(hook, || {
                let rest = operation();
                ended.send(None).unwrap();
                rest
            });
            rest();
        });
        let step = told.recv_timeout(PATIENCE).expect("an operation ends");
        let Some(step) = step else {
            drop((permits, tickets));
            return Ok(false);
        };
        let (finished, result) = mpsc::channel();
        scope.spawn(move || {
            let check = || others::everything(gate, mode, permits, tickets);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
            finished.send(outcome).unwrap();
        });
        let Ok(outcome) = result.recv_timeout(4 * PATIENCE) else {
            eprintln!("others hang while one stands before step {k}: {step:?}");
            std::process::abort();
        };
        go_on.send(()).unwrap();
        match outcome {
            Ok(()) => Ok(true),
            Err(panic) => {
                let what = panic.downcast_ref::<String>().cloned();
                Err((step, what.unwrap_or_else(|| "panicked".into())))
            }
        }
    })
}
