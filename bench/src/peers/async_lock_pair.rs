//! Two async-lock semaphores, one for each engine limit, and a count of those who queue.

use std::task::Poll;

use async_lock::{Semaphore, SemaphoreGuard};

use super::Places;
use crate::subject::{Arrival, BoxedTicket, Rules, Subject, poll_once};

/// A running and a waiting semaphore of the whole worker; ranks are not told apart.
pub struct AsyncLockPair {
    running: Semaphore,
    waiting: Semaphore,
    places: Places,
}

/// A permit of each; the second goes at the first token.
pub struct GuardPair<'g> {
    // Given back first: whoever is then offered the other finds both.
    waiting: Option<SemaphoreGuard<'g>>,
    _running: SemaphoreGuard<'g>,
}

impl Subject for AsyncLockPair {
    const NAME: &'static str = "two async-lock semaphores";
    const RULES: Rules = Rules {
        ranks: false,
        // A newcomer may take what a release gave to the queue.
        order: false,
        offers: false,
        ..Rules::ALL
    };
    type Permit<'g> = GuardPair<'g>;
    type Ticket<'g> = BoxedTicket<'g, GuardPair<'g>>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        let ranks = ranks.max(1);
        AsyncLockPair {
            running: Semaphore::new((ranks * r) as usize),
            waiting: Semaphore::new((ranks * w) as usize),
            places: Places::new(ranks * q),
        }
    }

    fn try_admit(&self, _rank: Option<u32>) -> Option<GuardPair<'_>> {
        let running = self.running.try_acquire()?;
        let waiting = self.waiting.try_acquire()?;
        Some(GuardPair {
            _running: running,
            waiting: Some(waiting),
        })
    }

    fn request(&self, rank: Option<u32>) -> Arrival<GuardPair<'_>, Self::Ticket<'_>> {
        if let Some(permit) = self.try_admit(rank) {
            return Arrival::Admitted(permit);
        }
        let Some(place) = self.places.take() else {
            return Arrival::Refused;
        };
        let mut ticket: Self::Ticket<'_> = Box::pin(async move {
            let running = self.running.acquire().await;
            let waiting = self.waiting.acquire().await;
            drop(place);
            GuardPair {
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

    fn first_token(permit: &mut GuardPair<'_>) {
        permit.waiting = None;
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> GuardPair<'g>
    where
        Self: 'g,
    {
        futures_executor::block_on(ticket)
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        // These semaphores do not tell how much is free.
        None
    }
}
