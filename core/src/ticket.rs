//! Tickets: the place of a queued request, to be awaited, waited for or cancelled.

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Rejection, Stopped};
use crate::gate::Gate;
use crate::park;
use crate::permit::PermitOf;
use crate::slots::Place;

/// A ticket that borrows its gate.
pub type Ticket<'g> = TicketOf<&'g Gate>;

/// A ticket that keeps its gate alive.
pub type OwnedTicket = TicketOf<Gate>;

/// The place of a queued request: [`Ticket`] or [`OwnedTicket`].
///
/// It is a future of the permit; a plain thread calls [`wait`](Self::wait).
/// Dropping it cancels the request at once: the queue place is free again, and
/// capacity that it had been offered goes to the next. Polling it again after
/// it was ready panics.
#[must_use = "dropping a ticket cancels the request"]
pub struct TicketOf<G: Borrow<Gate>> {
    /// Gone once the permit was taken.
    held: Option<(G, Place)>,
}

/// What a request that was not refused got: [`Admission`] or [`AdmissionOwned`].
#[derive(Debug)]
#[must_use = "dropping it ends or cancels the request"]
pub enum AdmissionOf<G: Borrow<Gate>> {
    /// It entered at once.
    Admitted(PermitOf<G>),
    /// It waits for its turn.
    Queued(TicketOf<G>),
}

/// Permit or ticket that borrow their gate.
pub type Admission<'g> = AdmissionOf<&'g Gate>;

/// Permit or ticket that keep their gate alive.
pub type AdmissionOwned = AdmissionOf<Gate>;

/// How a timed wait ended without a permit.
#[derive(Debug)]
pub enum WaitError<G: Borrow<Gate>> {
    /// Time ran out. The request keeps its place: wait again, or drop the ticket.
    Timeout(TicketOf<G>),
    /// The gate was stopped.
    Stopped,
}

impl<G: Borrow<Gate>> TicketOf<G> {
    pub(crate) fn new(gate: G, place: Place) -> Self {
        TicketOf {
            held: Some((gate, place)),
        }
    }

    /// Leaves the queue, as dropping the ticket does. When capacity is offered
    /// at the same moment, cancelling wins and the capacity goes to the next.
    pub fn cancel(self) {}

    /// Parks this thread until the request is admitted.
    ///
    /// # Errors
    /// The gate was stopped.
    pub fn wait(self) -> Result<PermitOf<G>, Stopped>
    where
        G: Unpin,
    {
        park::block_on(self)
    }

    /// Parks this thread until the request is admitted, or `timeout` is over.
    ///
    /// # Errors
    /// [`WaitError::Timeout`] gives the ticket back, its place kept.
    pub fn wait_timeout(mut self, timeout: Duration) -> Result<PermitOf<G>, WaitError<G>>
    where
        G: Unpin,
    {
        match park::block_on_timeout(pin!(&mut self), timeout) {
            Some(admitted) => admitted.map_err(|Stopped| WaitError::Stopped),
            None => Err(WaitError::Timeout(self)),
        }
    }
}

impl<G: Borrow<Gate> + Unpin> Future for TicketOf<G> {
    type Output = Result<PermitOf<G>, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (gate, place) = self
            .held
            .as_ref()
            .expect("a ticket is not polled after it was ready");
        match gate.borrow().shared.poll_take(*place, context.waker()) {
            Poll::Pending => Poll::Pending,
            // Dropping the ticket takes the request out of the stopped gate's queue.
            Poll::Ready(Err(Stopped)) => Poll::Ready(Err(Stopped)),
            Poll::Ready(Ok(hold)) => {
                let (gate, _) = self.held.take().expect("looked at above");
                Poll::Ready(Ok(PermitOf::new(gate, hold)))
            }
        }
    }
}

impl<G: Borrow<Gate>> Drop for TicketOf<G> {
    fn drop(&mut self) {
        if let Some((gate, place)) = self.held.take() {
            gate.borrow().shared.cancel(place);
        }
    }
}

impl<G: Borrow<Gate>> fmt::Debug for TicketOf<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("place", &self.held.as_ref().map(|held| held.1))
            .finish()
    }
}

/// The future behind [`Gate::admit`] and [`Gate::admit_owned`].
///
/// It arrives at its first poll. Dropped before that, the request was never
/// there; dropped while queued, it is cancelled.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct AdmitOf<G: Borrow<Gate>>(Step<G>);

/// The future of a permit that borrows its gate.
pub type Admit<'g> = AdmitOf<&'g Gate>;

/// The future of a permit that keeps its gate alive.
pub type AdmitOwned = AdmitOf<Gate>;

#[derive(Debug)]
enum Step<G: Borrow<Gate>> {
    Arriving(G, Option<u32>),
    Queued(TicketOf<G>),
    Done,
}

impl<G: Borrow<Gate>> AdmitOf<G> {
    pub(crate) fn new(gate: G, rank: Option<u32>) -> Self {
        AdmitOf(Step::Arriving(gate, rank))
    }
}

impl<G: Borrow<Gate> + Unpin> Future for AdmitOf<G> {
    type Output = Result<PermitOf<G>, Rejection>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut ticket = match std::mem::replace(&mut self.0, Step::Done) {
            Step::Arriving(gate, rank) => match Gate::arrive(gate, rank)? {
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
