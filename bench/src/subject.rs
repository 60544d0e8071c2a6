//! One face for everything that is timed.

use std::future::Future;

use tidegate::{
    AdmissionOf, EngineReport, Gate, OwnedPermit, OwnedTicket, Permit, Settings, Ticket,
};

/// A gate as the benchmarks use it. Each row of a table is one.
pub trait Subject: Sized + Send + Sync {
    /// What a row is called.
    const NAME: &'static str;

    /// What an admitted request holds; dropping it gives that back.
    type Permit<'g>: Send
    where
        Self: 'g;

    /// A queued request's place: a future of its permit. Dropping it cancels.
    type Ticket<'g>: Future<Output = Self::Permit<'g>> + Send + Unpin
    where
        Self: 'g;

    /// A gate of ranks 0 to `ranks`, each with these limits.
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

    /// What the whole worker holds, at rest: running, waiting, queued.
    fn held(&self) -> (u64, u64, u64);
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

/// The gate with permits and tickets that borrow it.
pub struct Borrowed(Gate);

/// The gate with permits and tickets that keep it alive.
pub struct Owned(Gate);

impl Subject for Borrowed {
    const NAME: &'static str = "tidegate";
    type Permit<'g> = Permit<'g>;
    type Ticket<'g> = Admitting<Ticket<'g>>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        Borrowed(gate(ranks, r, w, q))
    }

    fn try_admit(&self, rank: Option<u32>) -> Option<Permit<'_>> {
        self.0.try_admit(rank).ok()
    }

    fn request(&self, rank: Option<u32>) -> Arrival<Self::Permit<'_>, Self::Ticket<'_>> {
        match self.0.request(rank) {
            Ok(AdmissionOf::Admitted(permit)) => Arrival::Admitted(permit),
            Ok(AdmissionOf::Queued(ticket)) => Arrival::Queued(Admitting(ticket)),
            Err(_) => Arrival::Refused,
        }
    }

    fn first_token(permit: &mut Permit<'_>) {
        permit.first_token();
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> Permit<'g>
    where
        Self: 'g,
    {
        ticket.0.wait().expect("the gate runs")
    }

    fn held(&self) -> (u64, u64, u64) {
        held(&self.0)
    }
}

impl Subject for Owned {
    const NAME: &'static str = "tidegate owned";
    type Permit<'g> = OwnedPermit;
    type Ticket<'g> = Admitting<OwnedTicket>;

    fn build(ranks: u32, r: u32, w: u32, q: u32) -> Self {
        Owned(gate(ranks, r, w, q))
    }

    fn try_admit(&self, rank: Option<u32>) -> Option<OwnedPermit> {
        self.0.try_admit_owned(rank).ok()
    }

    fn request(&self, rank: Option<u32>) -> Arrival<Self::Permit<'_>, Self::Ticket<'_>> {
        match self.0.request_owned(rank) {
            Ok(AdmissionOf::Admitted(permit)) => Arrival::Admitted(permit),
            Ok(AdmissionOf::Queued(ticket)) => Arrival::Queued(Admitting(ticket)),
            Err(_) => Arrival::Refused,
        }
    }

    fn first_token(permit: &mut OwnedPermit) {
        permit.first_token();
    }

    fn wait<'g>(ticket: Self::Ticket<'g>) -> OwnedPermit
    where
        Self: 'g,
    {
        ticket.0.wait().expect("the gate runs")
    }

    fn held(&self) -> (u64, u64, u64) {
        held(&self.0)
    }
}

/// A ticket of a gate that nobody stops.
pub struct Admitting<T>(T);

impl<T, P, E> Future for Admitting<T>
where
    T: Future<Output = Result<P, E>> + Unpin,
    E: std::fmt::Debug,
{
    type Output = P;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<P> {
        std::pin::Pin::new(&mut self.0)
            .poll(context)
            .map(|admitted| admitted.expect("the gate runs"))
    }
}

/// All three limits, in the order R, W, Q.
pub(crate) fn settings(r: u32, w: u32, q: u32) -> Settings {
    Settings {
        engine_request_limit: Some(r),
        engine_request_waiting_limit: Some(w),
        request_queue_limit: Some(q),
    }
}

/// Ranks 0 to `ranks`, as an engine reports them.
pub(crate) fn report(ranks: u32) -> EngineReport {
    EngineReport {
        ranks: (0..ranks).collect(),
        max_num_seqs: None,
    }
}

fn gate(ranks: u32, r: u32, w: u32, q: u32) -> Gate {
    let built = Gate::builder().settings(settings(r, w, q)).build();
    let gate = built.expect("the limits are in range");
    let reported = gate.report_engine(report(ranks));
    reported.expect("the report is usable");
    gate
}

fn held(gate: &Gate) -> (u64, u64, u64) {
    gate.settle();
    let worker = gate.snapshot().worker;
    (worker.running, worker.waiting, worker.queued)
}
