//! Runs a script on all three gates and holds them against each other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tidegate::spec::{self, LaneIndex, Number, SpecGate};
use tidegate::{Admission, Gate, Lane, Overload, Permit, Rejection, Snapshot, Source, Ticket};

use super::naive::{self, Naive};
use super::{Op, Script, invariants};

/// Runs a whole script, and then lets everything go.
///
/// # Panics
/// The gates disagree, or an invariant is broken.
pub fn run(script: &Script) {
    let Ok(spec) = SpecGate::new(script.settings) else {
        assert!(Gate::builder().settings(script.settings).build().is_err());
        return;
    };
    let gate = Gate::builder().settings(script.settings).build().unwrap();
    let mut run = Run {
        gate: &gate,
        spec,
        naive: Naive::new(script.settings),
        queued: Vec::new(),
        admitted: Vec::new(),
        before: gate.snapshot(),
    };
    for op in &script.ops {
        run.step(*op);
        gate.settle();
        run.check();
    }
    run.let_go();
}

struct Run<'g> {
    gate: &'g Gate,
    spec: SpecGate,
    naive: Naive,
    queued: Vec<Queued<'g>>,
    admitted: Vec<Admitted<'g>>,
    before: Snapshot,
}

/// A queued or offered request, as the three gates know it. Oldest first.
struct Queued<'g> {
    ticket: Ticket<'g>,
    number: Number,
    id: usize,
    /// Set by the last waker that the ticket was polled with.
    woken: Option<Arc<Woken>>,
}

struct Admitted<'g> {
    permit: Permit<'g>,
    lane: LaneIndex,
    id: usize,
}

impl<'g> Run<'g> {
    fn step(&mut self, op: Op) {
        match op {
            Op::TryAdmit(who) => {
                let rank = who.rank();
                let real = self.gate.try_admit(rank).map(Admission::Admitted);
                let spec = self.spec.try_admit(rank).map(spec::Answer::Admitted);
                let naive = self.naive.try_admit(rank);
                self.arrived(real, spec, naive);
            }
            Op::Request(who) => {
                let rank = who.rank();
                let real = self.gate.request(rank);
                let spec = self.spec.request(rank);
                let naive = self.naive.request(rank);
                self.arrived(real, spec, naive);
            }
            Op::EnterIfRoom(who) => {
                let rank = who.rank();
                let real = self.gate.enter_if_room(rank);
                let spec = self.spec.enter_if_room(rank);
                let naive = self.naive.enter_if_room(rank);
                match (real, spec, naive) {
                    (Some(permit), Some(lane), Some(id)) => self.enter(permit, lane, id),
                    (None, None, None) => {}
                    other => panic!("enter_if_room: {other:?}"),
                }
            }
            Op::GoneOnArrival(who) => {
                self.gate.cancelled_on_arrival(who.rank());
                self.spec.cancelled_on_arrival(who.rank());
                self.naive.gone_on_arrival(who.rank());
            }
            Op::Take(which) => {
                if let Some(i) = pick(which, self.queued.len()) {
                    self.take(i);
                }
            }
            Op::Cancel(which) => {
                if let Some(i) = pick(which, self.queued.len()) {
                    let request = self.queued.remove(i);
                    request.ticket.cancel();
                    self.spec.cancel(request.number);
                    self.naive.cancel(request.id);
                }
            }
            Op::FirstToken(which) => {
                if let Some(i) = pick(which, self.admitted.len()) {
                    self.first_token(i);
                }
            }
            Op::Release(which) => {
                if let Some(i) = pick(which, self.admitted.len()) {
                    let request = self.admitted.swap_remove(i);
                    let waiting = request.permit.is_waiting();
                    drop(request.permit);
                    self.spec.release(request.lane, waiting);
                    self.naive.leave(request.id);
                }
            }
            Op::SetLimits(settings) => {
                let real = self.gate.set_limits(settings);
                assert_eq!(real, self.spec.set_limits(settings));
                assert_eq!(real.is_ok(), self.naive.set_limits(settings));
            }
            Op::Report(report) => {
                let report = report.engine();
                let real = self.gate.report_engine(report.clone());
                assert_eq!(real, self.spec.report_engine(&report));
                assert_eq!(real.is_ok(), self.naive.report(&report));
            }
        }
    }

    /// A request arrived: the three answers must be the same.
    fn arrived(
        &mut self,
        real: Result<Admission<'g>, Rejection>,
        spec: Result<spec::Answer, Overload>,
        naive: naive::Answer,
    ) {
        match (real, spec, naive) {
            (
                Ok(Admission::Admitted(permit)),
                Ok(spec::Answer::Admitted(lane)),
                naive::Answer::Admitted(id),
            ) => self.enter(permit, lane, id),
            (
                Ok(Admission::Queued(ticket)),
                Ok(spec::Answer::Queued(number)),
                naive::Answer::Queued(id),
            ) => self.queued.push(Queued {
                ticket,
                number,
                id,
                woken: None,
            }),
            (Err(Rejection::Overloaded(real)), Err(spec), naive::Answer::Refused(naive)) => {
                assert_eq!(real, spec, "the gate and the sequential one");
                assert_eq!(spec, naive, "the sequential gate and the naive one");
                let ranked = real.lane != Lane::Unspecified;
                invariants::check_refusal(&real, ranked, &self.spec.snapshot());
            }
            other => panic!("the answers differ: {other:?}"),
        }
    }

    fn enter(&mut self, permit: Permit<'g>, lane: LaneIndex, id: usize) {
        assert_eq!(permit.source(), Source::Direct);
        assert_eq!(permit.lane(), self.spec.lane_at(lane));
        self.admitted.push(Admitted { permit, lane, id });
    }

    fn take(&mut self, i: usize) {
        let request = &mut self.queued[i];
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let real = Pin::new(&mut request.ticket).poll(&mut Context::from_waker(&waker));
        let spec = self.spec.take(request.number);
        assert_eq!(real.is_ready(), spec, "the gate and the sequential one");
        assert_eq!(spec, self.naive.take(request.id), "and the naive one");
        let Poll::Ready(permit) = real else {
            request.woken = Some(woken);
            return;
        };
        let permit = permit.expect("the gate was not stopped");
        assert_eq!(permit.source(), Source::Queue);
        let Queued { number, id, .. } = self.queued.remove(i);
        self.admitted.push(Admitted {
            permit,
            lane: number.lane(),
            id,
        });
    }

    fn first_token(&mut self, i: usize) {
        let Admitted { permit, lane, id } = &mut self.admitted[i];
        if permit.is_waiting() {
            self.spec.first_token(*lane);
            self.naive.first_token(*id);
        }
        permit.first_token();
    }

    fn check(&mut self) {
        self.gate.settle();
        let now = self.gate.snapshot();
        assert_eq!(now, self.spec.snapshot(), "the gate and the sequential one");
        assert_eq!(now, self.naive.snapshot(), "and the naive one");
        invariants::check(&now, &self.before);
        self.before = now;
        self.spec.take_offers();
        self.check_order();
        self.check_wake_ups();
    }

    /// Within a lane nobody is offered anything before an older one.
    fn check_order(&self) {
        let mut blocked = Vec::new();
        for request in &self.queued {
            let lane = request.number.lane();
            if self.spec.is_queued(request.number) {
                blocked.push(lane);
            } else {
                assert!(
                    !blocked.contains(&lane),
                    "one of lane {lane} was passed over"
                );
            }
        }
    }

    /// Whoever waits on a waker and was offered something has been woken.
    fn check_wake_ups(&self) {
        for request in &self.queued {
            if let Some(woken) = &request.woken
                && !self.spec.is_queued(request.number)
            {
                let deadline = Instant::now() + Duration::from_secs(5);
                while !woken.0.load(Ordering::SeqCst) {
                    assert!(Instant::now() < deadline, "a wake-up was lost");
                    std::thread::yield_now();
                }
            }
        }
    }

    fn let_go(&mut self) {
        while !self.queued.is_empty() {
            self.step(Op::Cancel(0));
            self.check();
        }
        while !self.admitted.is_empty() {
            self.step(Op::Release(0));
            self.check();
        }
        let idle = self.gate.snapshot();
        for lane in &idle.lanes {
            let held = (lane.running, lane.waiting, lane.queued, lane.offered);
            assert_eq!(held, (0, 0, 0, 0), "{lane:?}");
        }
    }
}

/// The place meant by `which`, counted round.
fn pick(which: u8, len: usize) -> Option<usize> {
    usize::from(which).checked_rem(len)
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}
