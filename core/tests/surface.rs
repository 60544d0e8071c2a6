//! What the types promise: who may send, share and keep them.

mod common;

use common::*;
use tidegate::{
    AdmissionOwned, Admit, AdmitOwned, Gate, OwnedPermit, OwnedTicket, Permit, Rejection, Room,
    Snapshot, Stopped, Ticket,
};

const fn send<T: Send>() {}
const fn sync<T: Sync>() {}
const fn unpin<T: Unpin>() {}
const fn forever<T: Send + 'static>() {}
const fn error<T: std::error::Error + Send + Sync + 'static>() {}

const _: () = {
    send::<Gate>();
    sync::<Gate>();
    send::<Permit<'_>>();
    send::<Ticket<'_>>();
    send::<Admit<'_>>();
    send::<Room<'_>>();
    sync::<Permit<'_>>();
    sync::<Ticket<'_>>();
    forever::<Gate>();
    forever::<OwnedPermit>();
    forever::<OwnedTicket>();
    forever::<AdmissionOwned>();
    forever::<AdmitOwned>();
    forever::<Snapshot>();
    unpin::<Ticket<'_>>();
    unpin::<Admit<'_>>();
    unpin::<OwnedTicket>();
    unpin::<AdmitOwned>();
    unpin::<Room<'_>>();
    error::<Rejection>();
    error::<Stopped>();
    error::<tidegate::LimitError>();
    error::<tidegate::ReportError>();
};

#[test]
fn a_handle_is_a_clone_of_one_gate() {
    let gate = gate(1, 1, 0);
    let other = gate.clone();
    let permit = enter(&gate, None);
    assert!(other.try_admit(None).is_err());
    drop(permit);
    idle_check(&other);
}

#[test]
fn a_gate_without_counters_still_shows_what_it_holds() {
    let builder = Gate::builder().settings(settings(1, 1, 1));
    let gate = builder.counters(false).build().unwrap();
    gate.report_engine(report([3], None)).unwrap();
    let permit = gate.try_admit(Some(3)).unwrap();
    let ticket = queue(&gate, Some(3));
    assert!(gate.try_admit(None).is_err());
    let seen = gate.snapshot();
    assert_eq!(held(&gate), (1, 1, 1));
    for lane in &seen.lanes {
        assert_eq!(
            (lane.admitted(), lane.rejected(), lane.cancelled),
            (0, 0, 0)
        );
        assert!(lane.conserves(), "{lane:?}");
    }
    drop(permit);
    drop(take(&gate, ticket));
    assert_eq!(held(&gate), (0, 0, 0));
}

#[test]
fn everything_can_be_shown_for_debugging() {
    let gate = gate(1, 1, 1);
    assert!(format!("{gate:?}").contains("engine_request_limit: 1"));
    let permit = enter(&gate, None);
    assert!(format!("{permit:?}").contains("Unspecified"));
    let ticket = queue(&gate, None);
    assert!(format!("{ticket:?}").starts_with("Ticket"));
}

#[test]
#[should_panic(expected = "after it was ready")]
fn a_ticket_polled_after_it_was_ready_panics() {
    let gate = gate(1, 1, 1);
    let holder = enter(&gate, None);
    let mut ticket = queue(&gate, None);
    drop(holder);
    gate.settle();
    assert!(poll(&mut ticket).is_ready());
    let _ = poll(&mut ticket);
}
