//! The usual design: the sequential gate in one mutex, and a oneshot channel to
//! each waiter, which whoever frees capacity sends to after letting go of the lock.
//!
//! Its queue is a `VecDeque`, as in the reference that it stands for: leaving it
//! from the middle moves up to half of it, under the lock.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use parking_lot::{Mutex, MutexGuard};
use tidegate::spec::{Answer, LaneIndex, Number, SpecGate};
use tokio::sync::oneshot;

use crate::subject::{Arrival, Subject, report, settings};

/// The sequential gate behind a `parking_lot` mutex.
pub struct MutexGate(Mutex<State>);

struct State {
    spec: SpecGate,
    waiters: HashMap<Number, oneshot::Sender<()>>,
}

/// What an admitted request holds.
pub struct MutexPermit<'g> {
    gate: &'g MutexGate,
    lane: LaneIndex,
    waiting: bool,
}

/// A queued request's place.
pub struct MutexTicket<'g> {
    gate: &'g MutexGate,
    number: Number,
    /// Gone once it was waited for.
    offered: Option<oneshot::Receiver<()>>,
    taken: bool,
}

impl Subject for MutexGate {
    const NAME: &'static str = "mutex + oneshot";
    type Permit<'g> = MutexPermit<'g>;
    type Ticket<'g> = MutexTicket<'g>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        let spec = SpecGate::new(settings(r, w, q));
        let mut spec = spec.expect("the limits are in range");
        if let Some(report) = report(ranks) {
            spec.report_engine(&report).expect("the report is usable");
        }
        MutexGate(Mutex::new(State {
            spec,
            waiters: HashMap::new(),
        }))
    }

    fn try_admit(&self, rank: Option<u32>) -> Option<MutexPermit<'_>> {
        let lane = self.0.lock().spec.try_admit(rank).ok()?;
        Some(MutexPermit::new(self, lane))
    }

    fn request(&self, rank: Option<u32>) -> Arrival<MutexPermit<'_>, MutexTicket<'_>> {
        let mut state = self.0.lock();
        match state.spec.request(rank) {
            Ok(Answer::Admitted(lane)) => Arrival::Admitted(MutexPermit::new(self, lane)),
            Ok(Answer::Queued(number)) => {
                let (sender, offered) = oneshot::channel();
                state.waiters.insert(number, sender);
                Arrival::Queued(MutexTicket {
                    gate: self,
                    number,
                    offered: Some(offered),
                    taken: false,
                })
            }
            Err(_) => Arrival::Refused,
        }
    }

    fn first_token(permit: &mut MutexPermit<'_>) {
        if std::mem::take(&mut permit.waiting) {
            let mut state = permit.gate.0.lock();
            state.spec.first_token(permit.lane);
            tell(state);
        }
    }

    fn wait<'g>(ticket: MutexTicket<'g>) -> MutexPermit<'g>
    where
        Self: 'g,
    {
        // Cheaper than the channel's own blocking call.
        futures_executor::block_on(ticket)
    }

    fn resize(&self, r: u32, w: u32, q: u32) -> bool {
        let mut state = self.0.lock();
        let resized = state.spec.set_limits(settings(r, w, q)).is_ok();
        tell(state);
        resized
    }

    fn held(&self) -> Option<(u64, u64, u64)> {
        let worker = self.0.lock().spec.snapshot().worker;
        Some((worker.running, worker.waiting, worker.queued))
    }
}

impl<'g> MutexPermit<'g> {
    fn new(gate: &'g MutexGate, lane: LaneIndex) -> Self {
        MutexPermit {
            gate,
            lane,
            waiting: true,
        }
    }
}

impl Drop for MutexPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.0.lock();
        state.spec.release(self.lane, self.waiting);
        tell(state);
    }
}

impl<'g> MutexTicket<'g> {
    /// Takes the offer up, which must have been made.
    fn take(&mut self) -> MutexPermit<'g> {
        self.taken = self.gate.0.lock().spec.take(self.number);
        assert!(self.taken, "told without an offer");
        MutexPermit::new(self.gate, self.number.lane())
    }
}

impl<'g> Future for MutexTicket<'g> {
    type Output = MutexPermit<'g>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<MutexPermit<'g>> {
        let offered = self.offered.as_mut().expect("not ready before");
        match Pin::new(offered).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(told) => {
                told.expect("the gate outlives its tickets");
                self.offered = None;
                Poll::Ready(self.take())
            }
        }
    }
}

impl Drop for MutexTicket<'_> {
    fn drop(&mut self) {
        if !self.taken {
            let mut state = self.gate.0.lock();
            state.waiters.remove(&self.number);
            state.spec.cancel(self.number);
            tell(state);
        }
    }
}

/// Tells those who were offered capacity, after letting go of the lock.
fn tell(mut state: MutexGuard<'_, State>) {
    let offers = state.spec.take_offers();
    let told: Vec<_> = offers
        .iter()
        .filter_map(|number| state.waiters.remove(number))
        .collect();
    drop(state);
    for waiter in told {
        // One that has gone meanwhile gives the offer back itself.
        let _ = waiter.send(());
    }
}
