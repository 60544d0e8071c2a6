//! Tickets: the place of a queued request, to be awaited, waited for or cancelled.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::{Lane, Stopped};
use crate::handle::{GateRef, Handle};
use crate::lease::Lease;
use crate::park;
use crate::permit::PermitOf;
use crate::slots::Place;

/// A ticket that borrows its gate.
pub type Ticket<'g> = TicketOf<GateRef<'g>>;

/// A ticket that keeps its gate alive.
pub type OwnedTicket = TicketOf<Lease>;

/// The place of a queued request: [`Ticket`] or [`OwnedTicket`].
///
/// It is a future of the permit; a plain thread calls [`wait`](Self::wait).
/// Dropping it cancels the request at once: the queue place is free again, and
/// capacity that it had been offered goes to the next. Polling it again after
/// it was ready panics.
#[must_use = "dropping a ticket cancels the request"]
pub struct TicketOf<G: Handle> {
    /// Gone once the permit was taken.
    held: Option<(G, Place)>,
    /// How many turns the lane will have had with this request's, if nobody leaves.
    due: u64,
}

/// How a timed wait ended without a permit.
#[derive(Debug)]
pub enum WaitError<G: Handle> {
    /// Time ran out. The request keeps its place: wait again, or drop the ticket.
    Timeout(TicketOf<G>),
    /// The gate was stopped.
    Stopped,
}

impl<G: Handle> TicketOf<G> {
    pub(crate) fn new(gate: G, place: Place, due: u64) -> Self {
        TicketOf {
            held: Some((gate, place)),
            due,
        }
    }

    /// Where the request stands among those queued in its lane: 1 is next, 0 means that
    /// capacity is offered to it, or that it was admitted.
    ///
    /// Approximate, and cheap: three loads, whatever is queued. It counts down with the
    /// lane's turns and is never more than the lane has queued; of those who left
    /// ahead of the request it knows nothing else, so that it may be too high until
    /// they would have had their turn. Nor does it say how many of other lanes go first.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.held
            .as_ref()
            .map_or(0, |(gate, place)| gate.shared().position(*place, self.due))
    }

    /// The lane in which it is queued; `None` once it was admitted.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        let (gate, place) = self.held.as_ref()?;
        Some(gate.shared().lane_name(place.lane))
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

impl<G: Handle + Unpin> Future for TicketOf<G> {
    type Output = Result<PermitOf<G>, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (gate, place) = self
            .held
            .as_ref()
            .expect("a ticket is not polled after it was ready");
        match gate.shared().poll_take(*place, context.waker()) {
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

impl<G: Handle> Drop for TicketOf<G> {
    fn drop(&mut self) {
        if let Some((gate, place)) = self.held.take() {
            gate.shared().cancel(place);
        }
    }
}

impl<G: Handle> fmt::Debug for TicketOf<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("place", &self.held.as_ref().map(|held| held.1))
            .finish()
    }
}
