//! Gates for models, and what they must look like when everybody has left.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::{
    AdmissionOwned, Dispatch, EngineReport, Gate, OwnedPermit, OwnedTicket, Settings, Stopped,
};

/// All three limits, in the order R, W, Q.
pub fn settings(r: u32, w: u32, q: u32) -> Settings {
    Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    }
}

/// The report of an engine with these ranks that says nothing of its size.
pub fn report(ranks: &[u32]) -> EngineReport {
    EngineReport {
        ranks: ranks.to_vec(),
        max_num_seqs: None,
    }
}

/// A gate of one rank, with every request unranked. Whoever frees capacity runs
/// the turn.
pub fn gate(r: u32, w: u32, q: u32) -> Gate {
    dispatched(r, w, q, Dispatch::Assisted)
}

/// A gate of one rank whose turns run in [`Gate::settle`] alone.
pub fn manual(r: u32, w: u32, q: u32) -> Gate {
    dispatched(r, w, q, Dispatch::Manual)
}

/// A gate of one rank whose turns are its dispatcher thread's, once the model
/// starts that.
pub fn threaded(r: u32, w: u32, q: u32) -> Gate {
    dispatched(r, w, q, Dispatch::Thread)
}

fn dispatched(r: u32, w: u32, q: u32, dispatch: Dispatch) -> Gate {
    let builder = Gate::builder().settings(settings(r, w, q));
    let built = builder.dispatch(dispatch).build();
    built.expect("the limits are in range")
}

/// The gate with ranks 0 and 1.
pub fn with_ranks(gate: Gate) -> Gate {
    let report = gate.report_engine(report(&[0, 1]));
    report.expect("the report is usable");
    gate
}

/// A gate of ranks 0 and 1.
pub fn ranked(r: u32, w: u32, q: u32) -> Gate {
    with_ranks(gate(r, w, q))
}

/// One handle for several threads, that loom does not see: clones of the gate
/// itself step a count, and each step is one more place to be preempted at.
pub fn handle(gate: Gate) -> Arc<Gate> {
    Arc::new(gate)
}

/// The request must enter at once.
pub fn enter(gate: &Gate, rank: Option<u32>) -> OwnedPermit {
    gate.try_admit_owned(rank).expect("there is room")
}

/// The request must queue.
pub fn queue(gate: &Gate, rank: Option<u32>) -> OwnedTicket {
    match gate.request_owned(rank) {
        Ok(AdmissionOwned::Queued(ticket)) => ticket,
        other => panic!("expected to queue, got {other:?}"),
    }
}

/// Looks once at whether a ticket was offered its capacity. Where all turns have
/// ended, this is what a waiter would find, without the waiter's own steps.
pub fn look(ticket: &mut OwnedTicket) -> Option<Result<OwnedPermit, Stopped>> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(ticket).poll(&mut context) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Whether a request is admitted, or was offered its capacity.
pub fn is_in(admission: &mut AdmissionOwned) -> bool {
    match admission {
        AdmissionOwned::Admitted(_) => true,
        AdmissionOwned::Queued(ticket) => match look(ticket) {
            None => false,
            Some(answer) => {
                *admission = AdmissionOwned::Admitted(answer.expect("nobody stopped the gate"));
                true
            }
        },
    }
}

/// The ticket must have been offered its capacity.
pub fn granted(mut ticket: OwnedTicket) -> OwnedPermit {
    let answer = look(&mut ticket).expect("room is there, and the request still waits");
    answer.expect("nobody stopped the gate")
}

/// Nothing is held, every request is accounted for, and the next one enters.
pub fn idle(gate: &Gate) {
    gate.settle();
    let snapshot = gate.snapshot();
    for lane in &snapshot.lanes {
        let held = (lane.running, lane.waiting, lane.queued, lane.offered);
        assert_eq!(held, (0, 0, 0, 0), "{lane:?}");
        assert!(lane.conserves(), "{lane:?}");
    }
    assert_eq!(snapshot.worker.running, 0);
    drop(gate.try_admit(None).expect("an idle gate admits"));
}
