//! tower's `ConcurrencyLimit` under `LoadShed`: a limit on what runs, and an
//! error for what does not fit. It has no queue, no ranks and no waiting limit.

use std::convert::Infallible;
use std::future::{Future, Pending, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::{Service, ServiceBuilder};

use crate::subject::{Arrival, Rules, Subject, poll_once};

type Shed = LoadShed<ConcurrencyLimit<Engine>>;

/// A service that works on a request until somebody drops it.
#[derive(Clone)]
struct Engine;

impl Service<()> for Engine {
    type Response = ();
    type Error = Infallible;
    type Future = Pending<Result<(), Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        pending()
    }
}

/// A stack of layers; each request clones it, as servers do.
pub struct TowerLimit(Shed);

/// A request in the engine.
pub struct InService(#[expect(dead_code, reason = "it holds the permit")] Response);

type Response = Pin<Box<<Shed as Service<()>>::Future>>;

impl Subject for TowerLimit {
    const NAME: &'static str = "tower limit and shed";
    const RULES: Rules = Rules {
        running: true,
        ..Rules::NONE
    };
    type Permit<'g> = InService;
    type Ticket<'g> = Never;

    fn build(ranks: u32, r: u32, _w: u32, _q: u32) -> Self {
        let limit = (ranks.max(1) * r) as usize;
        let stack = ServiceBuilder::new().load_shed().concurrency_limit(limit);
        TowerLimit(stack.service(Engine))
    }

    fn try_admit(&self, _rank: Option<u32>) -> Option<InService> {
        let mut stack = self.0.clone();
        // Shedding makes it ready at once, with or without room.
        let _ = stack.poll_ready(&mut Context::from_waker(Waker::noop()));
        let mut response = Box::pin(stack.call(()));
        poll_once(&mut response)
            .is_pending()
            .then_some(InService(response))
    }

    fn request(&self, rank: Option<u32>) -> Arrival<InService, Never> {
        match self.try_admit(rank) {
            Some(permit) => Arrival::Admitted(permit),
            None => Arrival::Refused,
        }
    }

    fn first_token(_permit: &mut InService) {}

    fn wait<'g>(ticket: Never) -> InService
    where
        Self: 'g,
    {
        match ticket {}
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        None
    }
}

/// A ticket that nobody gets.
pub enum Never {}

impl Future for Never {
    type Output = InService;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<InService> {
        match *self {}
    }
}
