//! Arriving: what a request that is not refused gets, now or as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::arrive::Arrival;
use crate::error::Rejection;
use crate::handle::{GateRef, Handle};
use crate::lease::Lease;
use crate::permit::PermitOf;
use crate::ticket::TicketOf;

/// What a request that was not refused got: [`Admission`] or [`AdmissionOwned`].
#[derive(Debug)]
#[must_use = "dropping it ends or cancels the request"]
pub enum AdmissionOf<G: Handle> {
    /// It entered at once.
    Admitted(PermitOf<G>),
    /// It waits for its turn.
    Queued(TicketOf<G>),
}

/// Permit or ticket that borrow their gate.
pub type Admission<'g> = AdmissionOf<GateRef<'g>>;

/// Permit or ticket that keep their gate alive.
pub type AdmissionOwned = AdmissionOf<Lease>;

impl<G: Handle> AdmissionOf<G> {
    pub(crate) fn new(gate: G, arrival: Arrival) -> Self {
        match arrival {
            Arrival::Admitted(hold) => AdmissionOf::Admitted(PermitOf::new(gate, hold)),
            Arrival::Queued(place, due) => AdmissionOf::Queued(TicketOf::new(gate, place, due)),
        }
    }
}

/// The future behind [`Gate::admit`](crate::Gate::admit) and
/// [`Gate::admit_owned`](crate::Gate::admit_owned).
///
/// It arrives at its first poll. Dropped before that, the request was never
/// there; dropped while queued, it is cancelled.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct AdmitOf<G: Handle>(Step<G>);

/// The future of a permit that borrows its gate.
pub type Admit<'g> = AdmitOf<GateRef<'g>>;

/// The future of a permit that keeps its gate alive.
pub type AdmitOwned = AdmitOf<Lease>;

#[derive(Debug)]
enum Step<G: Handle> {
    Arriving(G, Option<u32>),
    Queued(TicketOf<G>),
    Done,
}

impl<G: Handle> AdmitOf<G> {
    pub(crate) fn new(gate: G, rank: Option<u32>) -> Self {
        AdmitOf(Step::Arriving(gate, rank))
    }
}

impl<G: Handle + Unpin> Future for AdmitOf<G> {
    type Output = Result<PermitOf<G>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut ticket = match std::mem::replace(&mut self.0, Step::Done) {
            Step::Arriving(gate, rank) => match arrive(gate, rank)? {
                AdmissionOf::Admitted(permit) => return Poll::Ready(Ok(permit)),
                AdmissionOf::Queued(ticket) => ticket,
            },
            Step::Queued(ticket) => ticket,
            Step::Done => panic!("an admission is not polled after it was ready"),
        };
        let answer = Pin::new(&mut ticket).poll(context);
        if answer.is_pending() {
            self.0 = Step::Queued(ticket);
        }
        answer.map_err(Rejection::from)
    }
}

fn arrive<G: Handle>(gate: G, rank: Option<u32>) -> Result<AdmissionOf<G>, Rejection> {
    let arrival = gate.shared().request(rank)?;
    Ok(AdmissionOf::new(gate, arrival))
}
