//! Runs threads against a gate, and records what they did.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;

use tidegate::{Admission, Gate, Overload, Permit, Rejection, Settings, Snapshot, Ticket};

use super::{Answer, Call, History, Plan, Random, Request, Resize, Span, What};
use crate::common::{gate, poll, report, settings};

/// One thread's part, and what it still holds.
struct Client<'g> {
    gate: &'g Gate,
    clock: &'g AtomicUsize,
    random: Random,
    ranks: u32,
    requests: Vec<Request>,
    resizes: Vec<Resize>,
    settled: Vec<Span>,
    permits: Vec<(usize, Permit<'g>)>,
    tickets: Vec<(usize, Ticket<'g>)>,
}

/// Runs the plan. `at_rest` sees the gate when all have done their calls and
/// keep what they hold: how many permits those are, and tickets.
pub fn run(plan: Plan, at_rest: impl Fn(&Snapshot, usize, usize)) -> (History, Snapshot) {
    let [r, w, q] = plan.limits;
    let gate = gate(r, w, q);
    if plan.ranks > 0 {
        gate.report_engine(report(0..plan.ranks, None)).unwrap();
    }
    gate.settle();
    let clock = AtomicUsize::new(0);
    let barrier = Barrier::new(plan.threads + 1);
    let held = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let parts: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..plan.threads)
            .map(|number| {
                let mut client = Client {
                    gate: &gate,
                    clock: &clock,
                    random: Random::new(plan.seed.wrapping_mul(31) + number as u64),
                    ranks: plan.ranks,
                    requests: Vec::new(),
                    resizes: Vec::new(),
                    settled: Vec::new(),
                    permits: Vec::new(),
                    tickets: Vec::new(),
                };
                let (barrier, held) = (&barrier, &held);
                scope.spawn(move || {
                    barrier.wait();
                    let resizes = plan.resizes && number == 0;
                    perturbed(plan.seed + number as u64, || {
                        (0..plan.calls).for_each(|_| client.step(resizes));
                    });
                    held[0].fetch_add(client.permits.len(), Ordering::SeqCst);
                    held[1].fetch_add(client.tickets.len(), Ordering::SeqCst);
                    barrier.wait();
                    barrier.wait();
                    perturbed(plan.seed, || client.let_go());
                    (client.requests, client.resizes, client.settled)
                })
            })
            .collect();
        barrier.wait();
        barrier.wait();
        gate.settle();
        let [permits, tickets] = held.each_ref().map(|n| n.load(Ordering::SeqCst));
        at_rest(&gate.snapshot(), permits, tickets);
        barrier.wait();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    gate.settle();
    let mut history = History {
        plan,
        requests: Vec::new(),
        resizes: Vec::new(),
        settled: Vec::new(),
        end: clock.into_inner(),
    };
    for (requests, resizes, settled) in parts {
        history.settled.extend(settled);
        history.requests.extend(requests);
        history.resizes.extend(resizes);
    }
    (history, gate.snapshot())
}

/// With the hook of `--cfg tidegate_stall`, gives way before one in eight
/// atomic steps, so that calls overlap in more ways.
fn perturbed(seed: u64, f: impl FnOnce()) {
    #[cfg(tidegate_stall)]
    {
        let mut random = Random::new(seed ^ 0x5bd1);
        let hook = move |_| {
            if random.below(8) == 0 {
                thread::yield_now();
            }
        };
        tidegate::stall::hooked(hook, f);
    }
    #[cfg(not(tidegate_stall))]
    {
        let _ = seed;
        f();
    }
}

impl<'g> Client<'g> {
    fn stamp(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn timed<T>(&mut self, call: impl FnOnce() -> T) -> (usize, usize, T) {
        let start = self.stamp();
        let result = call();
        let end = self.stamp();
        if self.gate.is_settled() {
            self.settled.push((end, self.stamp()));
        }
        (start, end, result)
    }

    fn step(&mut self, resizes: bool) {
        if resizes && self.random.below(16) == 0 {
            return self.resize();
        }
        let held = self.permits.len();
        let queued = self.tickets.len();
        match self.random.below(10) {
            0 | 1 => self.arrive(false),
            2 | 3 => self.arrive(true),
            4 | 5 if queued > 0 => self.look(),
            6 if queued > 0 => self.cancel(),
            7 if held > 0 => self.token(),
            8 | 9 if held > 0 => self.release(),
            _ => self.arrive(true),
        }
    }

    fn arrive(&mut self, may_queue: bool) {
        let rank = self.random.below(self.ranks as usize + 1) as u32;
        let rank = (rank < self.ranks).then_some(rank);
        let gate = self.gate;
        let (start, end, result) = self.timed(|| {
            if may_queue {
                gate.request(rank)
            } else {
                let refused = |refusal| -> Rejection { refusal };
                gate.try_admit(rank)
                    .map(Admission::Admitted)
                    .map_err(refused)
            }
        });
        let number = self.requests.len();
        let answer = match result {
            Ok(Admission::Admitted(permit)) => {
                self.permits.push((number, permit));
                Answer::Admitted
            }
            Ok(Admission::Queued(ticket)) => {
                self.tickets.push((number, ticket));
                Answer::Queued
            }
            Err(Rejection::Overloaded(overload)) => refused(&overload),
            Err(other) => panic!("{other}"),
        };
        let what = if may_queue {
            What::Request
        } else {
            What::TryAdmit
        };
        let what = what(answer);
        let calls = vec![Call { what, start, end }];
        self.requests.push(Request { rank, calls });
    }

    fn note<T>(&mut self, number: usize, call: impl FnOnce() -> (What, T)) -> T {
        let (start, end, (what, result)) = self.timed(call);
        self.requests[number].calls.push(Call { what, start, end });
        result
    }

    fn look(&mut self) {
        let at = self.random.below(self.tickets.len());
        let (number, mut ticket) = self.tickets.swap_remove(at);
        let answer = self.note(number, || {
            let answer = poll(&mut ticket);
            (What::Poll(answer.is_ready()), answer)
        });
        match answer {
            Poll::Ready(permit) => self.permits.push((number, permit.unwrap())),
            Poll::Pending => self.tickets.push((number, ticket)),
        }
    }

    fn cancel(&mut self) {
        let at = self.random.below(self.tickets.len());
        let (number, ticket) = self.tickets.swap_remove(at);
        self.note(number, || (What::Cancel, ticket.cancel()));
    }

    fn token(&mut self) {
        let at = self.random.below(self.permits.len());
        let (number, mut permit) = self.permits.swap_remove(at);
        if permit.is_waiting() {
            self.note(number, || (What::Token, permit.first_token()));
        }
        self.permits.push((number, permit));
    }

    fn release(&mut self) {
        let at = self.random.below(self.permits.len());
        let (number, permit) = self.permits.swap_remove(at);
        self.note(number, || (What::Release, drop(permit)));
    }

    fn resize(&mut self) {
        let [r, w, q] = [1, 1, 0].map(|least| least + self.random.below(3) as u32);
        let limits: Settings = settings(r, w, q);
        let gate = self.gate;
        let (start, end, result) = self.timed(|| gate.set_limits(limits));
        result.unwrap();
        self.resizes.push(Resize { limits, start, end });
    }

    fn let_go(&mut self) {
        while !self.tickets.is_empty() {
            self.cancel();
        }
        while !self.permits.is_empty() {
            self.release();
        }
    }
}

fn refused(overload: &Overload) -> Answer {
    Answer::Refused {
        limit: overload.limit,
        of_worker: overload.of_worker,
        value: overload.value,
        scope: overload.scope,
    }
}
