//! Gates for models, and what they must look like when everybody has left.

use tidegate::{AdmissionOwned, EngineReport, Gate, OwnedPermit, OwnedTicket, Settings};

/// All three limits, in the order R, W, Q.
pub fn settings(r: u32, w: u32, q: u32) -> Settings {
    Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    }
}

/// A gate of one rank, with every request unranked.
pub fn gate(r: u32, w: u32, q: u32) -> Gate {
    let built = Gate::builder().settings(settings(r, w, q)).build();
    built.expect("the limits are in range")
}

/// A gate of ranks 0 and 1.
pub fn ranked(r: u32, w: u32, q: u32) -> Gate {
    let gate = gate(r, w, q);
    let report = EngineReport {
        ranks: vec![0, 1],
        max_num_seqs: None,
    };
    gate.report_engine(report).expect("the report is usable");
    gate
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
