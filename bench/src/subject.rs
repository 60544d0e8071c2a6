//! One face for everything that is timed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tidegate::{EngineReport, Settings};

pub use crate::ours::{Borrowed, Owned};

/// A gate as the benchmarks use it. Each row of a table is one.
pub trait Subject: Sized + Send + Sync + 'static {
    /// What a row is called.
    const NAME: &'static str;

    /// Which rules it keeps; it is timed only where it keeps what the row is about.
    const RULES: Rules = Rules::ALL;

    /// What an admitted request holds; dropping it gives that back.
    type Permit<'g>: Send;

    /// A queued request's place: a future of its permit. Dropping it cancels.
    type Ticket<'g>: Future<Output = Self::Permit<'g>> + Send + Unpin;

    /// A gate of ranks 0 to `ranks`, each with these limits; with 0 ranks the
    /// engine has not reported any.
    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self;

    /// Enters now or not at all.
    fn try_admit(&self, rank: Option<u32>) -> Option<Self::Permit<'_>>;

    /// Enters, queues or is refused.
    fn request(&self, rank: Option<u32>) -> Arrival<Self::Permit<'_>, Self::Ticket<'_>>;

    /// The request stops waiting and goes on running.
    fn first_token(permit: &mut Self::Permit<'_>);

    /// Parks this thread until the ticket's turn.
    fn wait<'g>(ticket: Self::Ticket<'g>) -> Self::Permit<'g>
    where
        Self: 'g;

    /// Sets all limits while it runs; false if it cannot.
    fn resize(&self, _r: u32, _w: u32, _q: u32) -> bool {
        false
    }

    /// What the whole worker holds, at rest: running, waiting, queued. `None` if
    /// the subject does not tell.
    fn held(&self) -> Option<(u64, u64, u64)>;
}

/// What a subject does of what a gate does. A peer that does less is cheaper
/// for that reason too, so the tables say which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The running limit is exact.
    pub running: bool,
    /// Requests whose first token has not come have a limit of their own.
    pub waiting: bool,
    /// Each rank has limits of its own, inside those of the worker.
    pub ranks: bool,
    /// What does not fit queues, to an exact number.
    pub queue: bool,
    /// The queue is first in, first out, and newcomers do not pass it.
    pub order: bool,
    /// Both capacities change hands at once, at the release.
    pub offers: bool,
}

impl Rules {
    /// A whole gate.
    pub const ALL: Rules = Rules {
        running: true,
        waiting: true,
        ranks: true,
        queue: true,
        order: true,
        offers: true,
    };

    /// Not a gate at all: a floor.
    pub const NONE: Rules = Rules {
        running: false,
        waiting: false,
        ranks: false,
        queue: false,
        order: false,
        offers: false,
    };

    /// The rules that are missing, in words; empty for a whole gate.
    pub fn missing(self) -> Vec<&'static str> {
        let kept = [
            (self.running, "limits"),
            (self.waiting, "waiting limit"),
            (self.ranks, "ranks"),
            (self.queue, "queue"),
            (self.order, "order"),
            (self.offers, "both capacities at once"),
        ];
        let missing = kept.into_iter().filter(|(kept, _)| !kept);
        missing.map(|(_, name)| name).collect()
    }
}

/// What became of a request.
#[derive(Debug)]
pub enum Arrival<P, T> {
    /// It entered.
    Admitted(P),
    /// It waits for its turn.
    Queued(T),
    /// It was refused.
    Refused,
}

impl<P, T> Arrival<P, T> {
    /// The ticket of a request that must have queued.
    ///
    /// # Panics
    /// It did not.
    pub fn queued(self) -> T {
        match self {
            Arrival::Queued(ticket) => ticket,
            Arrival::Admitted(_) => panic!("it entered"),
            Arrival::Refused => panic!("it was refused"),
        }
    }
}

/// The ticket of a subject whose own futures have no name.
pub type BoxedTicket<'g, P> = Pin<Box<dyn Future<Output = P> + Send + 'g>>;

/// Polls once with a waker that wakes nobody.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// All three limits, in the order R, W, Q.
pub(crate) fn settings(r: u32, w: u32, q: u32) -> Settings {
    Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    }
}

/// Ranks 0 to `ranks`, as an engine reports them; `None` for an engine that has not.
pub(crate) fn report(ranks: u32) -> Option<EngineReport> {
    (ranks > 0).then(|| EngineReport {
        ranks: (0..ranks).collect(),
        max_num_seqs: None,
    })
}
