//! Two tokio semaphores, one for each engine limit, and a count of those who queue.

use std::task::Poll;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Places;
use crate::subject::{Arrival, BoxedTicket, Rules, Subject, poll_once};

/// A running and a waiting semaphore of the whole worker; ranks are not told apart.
pub struct TokioPair {
    running: Semaphore,
    waiting: Semaphore,
    places: Places,
    limits: (usize, usize),
}

/// A permit of each; the second goes at the first token.
pub struct PairPermit<'g> {
    // Given back first: whoever is then offered the other finds both.
    waiting: Option<SemaphorePermit<'g>>,
    _running: SemaphorePermit<'g>,
}

impl Subject for TokioPair {
    const NAME: &'static str = "two tokio semaphores";
    const RULES: Rules = Rules {
        ranks: false,
        // A release offers one of the two; the waiter takes the other when it runs.
        offers: false,
        ..Rules::ALL
    };
    type Permit<'g> = PairPermit<'g>;
    type Ticket<'g> = BoxedTicket<'g, PairPermit<'g>>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        let ranks = ranks.max(1);
        let limits = ((ranks * r) as usize, (ranks * w) as usize);
        TokioPair {
            running: Semaphore::new(limits.0),
            waiting: Semaphore::new(limits.1),
            places: Places::new(ranks * q),
            limits,
        }
    }

    fn try_admit(&self, _rank: Option<u32>) -> Option<PairPermit<'_>> {
        let running = self.running.try_acquire().ok()?;
        let waiting = self.waiting.try_acquire().ok()?;
        Some(PairPermit {
            _running: running,
            waiting: Some(waiting),
        })
    }

    fn request(&self, rank: Option<u32>) -> Arrival<PairPermit<'_>, Self::Ticket<'_>> {
        if let Some(permit) = self.try_admit(rank) {
            return Arrival::Admitted(permit);
        }
        let Some(place) = self.places.take() else {
            return Arrival::Refused;
        };
        let mut ticket: Self::Ticket<'_> = Box::pin(async move {
            let running = self.running.acquire().await.expect("never closed");
            let waiting = self.waiting.acquire().await.expect("never closed");
            drop(place);
            PairPermit {
                _running: running,
                waiting: Some(waiting),
            }
        });
        // A semaphore's queue is joined at the first poll.
        match poll_once(&mut ticket) {
            Poll::Ready(permit) => Arrival::Admitted(permit),
            Poll::Pending => Arrival::Queued(ticket),
        }
    }

    fn first_token(permit: &mut PairPermit<'_>) {
        permit.waiting = None;
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> PairPermit<'g>
    where
        Self: 'g,
    {
        futures_executor::block_on(ticket)
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        let used = |limit: usize, semaphore: &Semaphore| {
            let free = semaphore.available_permits();
            (limit - free) as u64
        };
        Some((
            used(self.limits.0, &self.running),
            used(self.limits.1, &self.waiting),
            self.places.taken(),
        ))
    }
}
