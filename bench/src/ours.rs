//! Tidegate behind the adapter: both dispatch modes, borrowed and owned permits,
//! counters on and off. Off unless a name says otherwise.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tidegate::{AdmissionOf, Dispatch, Gate, OwnedPermit, OwnedTicket, Permit, Ticket};

use crate::subject::{Arrival, Subject, report, settings};

/// Permits and tickets that borrow the gate; releasing threads assist.
pub type Borrowed = Lent<true, false>;
/// The same with counters for the metrics.
pub type Counting = Lent<true, true>;
/// Permits and tickets that borrow the gate; the dispatcher thread alone hands on.
pub type Dispatched = Lent<false, false>;
/// Permits and tickets that keep the gate alive; releasing threads assist.
pub type Owned = Kept<true>;
/// Permits and tickets that keep the gate alive; the dispatcher thread alone hands on.
pub type OwnedDispatched = Kept<false>;

/// The gate with permits and tickets that borrow it.
pub struct Lent<const ASSISTED: bool, const COUNTING: bool>(Gate);

/// The gate with permits and tickets that keep it alive.
pub struct Kept<const ASSISTED: bool>(Gate);

impl<const ASSISTED: bool, const COUNTING: bool> Lent<ASSISTED, COUNTING> {
    /// The gate itself, for what the adapter does not have.
    pub fn gate(&self) -> &Gate {
        &self.0
    }
}

impl<const ASSISTED: bool, const COUNTING: bool> Subject for Lent<ASSISTED, COUNTING> {
    const NAME: &'static str = match (ASSISTED, COUNTING) {
        (true, false) => "tidegate",
        (true, true) => "tidegate, counting",
        (false, false) => "tidegate, dispatcher thread",
        (false, true) => "tidegate, dispatcher thread, counting",
    };
    type Permit<'g> = Permit<'g>;
    type Ticket<'g> = Admitting<Ticket<'g>>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        Lent(gate(ASSISTED, COUNTING, ranks, [r, w, q]))
    }

    fn try_admit(&self, rank: Option<u32>) -> Option<Permit<'_>> {
        self.0.try_admit(rank).ok()
    }

    fn request(&self, rank: Option<u32>) -> Arrival<Self::Permit<'_>, Self::Ticket<'_>> {
        match self.0.request(rank) {
            Ok(AdmissionOf::Admitted(permit)) => Arrival::Admitted(permit),
            Ok(AdmissionOf::Queued(ticket)) => Arrival::Queued(Admitting(ticket)),
            Err(_) => Arrival::Refused,
        }
    }

    fn first_token(permit: &mut Permit<'_>) {
        permit.first_token();
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> Permit<'g>
    where
        Self: 'g,
    {
        ticket.0.wait().expect("the gate runs")
    }

    fn resize(&self, r: u32, w: u32, q: u32) -> bool {
        self.0.set_limits(settings(r, w, q)).is_ok()
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        held(&self.0)
    }
}

impl<const ASSISTED: bool> Subject for Kept<ASSISTED> {
    const NAME: &'static str = if ASSISTED {
        "tidegate, owned"
    } else {
        "tidegate, owned, dispatcher thread"
    };
    type Permit<'g> = OwnedPermit;
    type Ticket<'g> = Admitting<OwnedTicket>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        Kept(gate(ASSISTED, false, ranks, [r, w, q]))
    }

    fn try_admit(&self, rank: Option<u32>) -> Option<OwnedPermit> {
        self.0.try_admit_owned(rank).ok()
    }

    fn request(&self, rank: Option<u32>) -> Arrival<Self::Permit<'_>, Self::Ticket<'_>> {
        match self.0.request_owned(rank) {
            Ok(AdmissionOf::Admitted(permit)) => Arrival::Admitted(permit),
            Ok(AdmissionOf::Queued(ticket)) => Arrival::Queued(Admitting(ticket)),
            Err(_) => Arrival::Refused,
        }
    }

    fn first_token(permit: &mut OwnedPermit) {
        permit.first_token();
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> OwnedPermit
    where
        Self: 'g,
    {
        ticket.0.wait().expect("the gate runs")
    }

    fn resize(&self, r: u32, w: u32, q: u32) -> bool {
        self.0.set_limits(settings(r, w, q)).is_ok()
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        held(&self.0)
    }
}

/// A ticket of a gate that nobody stops.
pub struct Admitting<T>(T);

impl<T, P, E> Future for Admitting<T>
where
    T: Future<Output = Result<P, E>> + Unpin,
    E: Debug,
{
    type Output = P;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<P> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|admitted| admitted.expect("the gate runs"))
    }
}

fn gate(assisted: bool, counting: bool, ranks: u32, [r, w, q]: [u32; 3]) -> Gate {
    let dispatch = if assisted {
        Dispatch::Assisted
    } else {
        Dispatch::Thread
    };
    let builder = Gate::builder()
        .settings(settings(r, w, q))
        .dispatch(dispatch)
        .counters(counting);
    let gate = builder.build().expect("the limits are in range");
    if let Some(report) = report(ranks) {
        gate.report_engine(report).expect("the report is usable");
    }
    gate
}

fn held(gate: &Gate) -> Option<(u64, u64, u64)> {
    gate.settle();
    let worker = gate.snapshot().worker;
    Some((worker.running, worker.waiting, worker.queued))
}
