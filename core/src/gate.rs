//! The gate's public face: wiring only.

use crate::admit::{Admission, AdmissionOf, AdmissionOwned, Admit, AdmitOf, AdmitOwned};
use crate::error::{Refusal, Rejection};
use crate::handle::Gate;
use crate::limits::{EngineReport, LimitError, Limits, ReportError, Settings};
use crate::park;
use crate::permit::{OwnedPermit, Permit, PermitOf};
use crate::room::Room;
use crate::shared::{Dispatch, Shared};
use crate::snapshot::Snapshot;
use crate::sync::{Arc, thread};

/// Explicit limits of a [`Gate`] to be built. What is not set follows the
/// engine's report, and until then the fallbacks in [`limits`](crate::limits).
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Builder {
    settings: Settings,
    dispatch: Dispatch,
    no_counters: bool,
}

impl Builder {
    /// Running requests per rank, at least 1.
    pub fn engine_request_limit(mut self, per_rank: u32) -> Self {
        self.settings.engine_request_limit = Some(per_rank);
        self
    }

    /// Running requests per rank whose first token has not come, at least 1.
    pub fn engine_request_waiting_limit(mut self, per_rank: u32) -> Self {
        self.settings.engine_request_waiting_limit = Some(per_rank);
        self
    }

    /// Queued requests per rank; 0 refuses at once whatever cannot enter.
    pub fn request_queue_limit(mut self, per_rank: u32) -> Self {
        self.settings.request_queue_limit = Some(per_rank);
        self
    }

    /// All explicit limits at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Who drains the queue; [`Dispatch::Assisted`] unless set.
    pub fn dispatch(mut self, dispatch: Dispatch) -> Self {
        self.dispatch = dispatch;
        self
    }

    /// Whether the gate counts what it admits, refuses and cancels; it does unless
    /// set otherwise. Without, those totals stay 0 in snapshots and metrics, and
    /// each request is cheaper by a store. Gauges and limits are always there.
    pub fn counters(mut self, counters: bool) -> Self {
        self.no_counters = !counters;
        self
    }

    /// Builds the gate and starts its dispatcher thread, which ends with the
    /// last handle.
    ///
    /// # Errors
    /// A limit out of its range.
    ///
    /// # Panics
    /// The operating system starts no thread.
    pub fn build(self) -> Result<Gate, LimitError> {
        let shared = Arc::new(Shared::new(
            self.settings,
            self.dispatch,
            !self.no_counters,
        )?);
        if self.dispatch.has_thread() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.dispatch());
        }
        Ok(Gate { shared })
    }
}

impl Gate {
    /// Starts with no explicit limits.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Enters now or says why not; never queues and never waits. A refusal
    /// counts as received and rejected.
    ///
    /// # Errors
    /// The engine limit that stands in the way, or a stopped gate.
    #[inline]
    pub fn try_admit(&self, rank: Option<u32>) -> Result<Permit<'_>, Refusal> {
        let hold = match self.shared.enter_at_once(rank) {
            Some(hold) => hold,
            None => self.shared.enter_or_refuse(rank)?,
        };
        Ok(PermitOf::new(self.by_ref(), hold))
    }

    /// [`try_admit`](Self::try_admit) with a permit that keeps the gate alive.
    ///
    /// # Errors
    /// As [`try_admit`](Self::try_admit).
    #[inline]
    pub fn try_admit_owned(&self, rank: Option<u32>) -> Result<OwnedPermit, Refusal> {
        let hold = match self.shared.enter_at_once(rank) {
            Some(hold) => hold,
            None => self.shared.enter_or_refuse(rank)?,
        };
        Ok(PermitOf::new(self.lease(), hold))
    }

    /// Enters or queues; never waits.
    ///
    /// # Errors
    /// The limit that left no room, or a stopped gate.
    pub fn request(&self, rank: Option<u32>) -> Result<Admission<'_>, Rejection> {
        Ok(AdmissionOf::new(self.by_ref(), self.shared.request(rank)?))
    }

    /// [`request`](Self::request) with a permit or ticket that keeps the gate alive.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_owned(&self, rank: Option<u32>) -> Result<AdmissionOwned, Rejection> {
        let arrival = self.shared.request(rank)?;
        Ok(AdmissionOf::new(self.lease(), arrival))
    }

    /// A future that enters, waiting its turn if it must. It arrives at its
    /// first poll; dropping it cancels the request.
    pub fn admit(&self, rank: Option<u32>) -> Admit<'_> {
        AdmitOf::new(self.by_ref(), rank)
    }

    /// [`admit`](Self::admit) with a permit that keeps the gate alive.
    pub fn admit_owned(&self, rank: Option<u32>) -> AdmitOwned {
        AdmitOf::new(self.lease(), rank)
    }

    /// Enters, parking this thread on its turn if it must.
    ///
    /// # Errors
    /// The limit that left no room, or a stopped gate.
    pub fn admit_blocking(&self, rank: Option<u32>) -> Result<Permit<'_>, Rejection> {
        park::block_on(self.admit(rank))
    }

    /// [`admit_blocking`](Self::admit_blocking) with a permit that keeps the gate alive.
    ///
    /// # Errors
    /// As [`admit_blocking`](Self::admit_blocking).
    pub fn admit_blocking_owned(&self, rank: Option<u32>) -> Result<OwnedPermit, Rejection> {
        park::block_on(self.admit_owned(rank))
    }

    /// Enters if there is room, and counts the request only then. For those who
    /// queue outside the gate: see [`room`](Self::room).
    pub fn enter_if_room(&self, rank: Option<u32>) -> Option<Permit<'_>> {
        let hold = self.shared.enter_if_room(rank)?;
        Some(PermitOf::new(self.by_ref(), hold))
    }

    /// [`enter_if_room`](Self::enter_if_room) with a permit that keeps the gate alive.
    pub fn enter_if_room_owned(&self, rank: Option<u32>) -> Option<OwnedPermit> {
        let hold = self.shared.enter_if_room(rank)?;
        Some(PermitOf::new(self.lease(), hold))
    }

    /// An event that fires when capacity may have freed after this call.
    pub fn room(&self) -> Room<'_> {
        Room::new(self)
    }

    /// Counts a request whose client had gone before it could arrive: received
    /// and cancelled, and the engine never hears of it.
    pub fn cancelled_on_arrival(&self, rank: Option<u32>) {
        self.shared.cancelled_on_arrival(rank);
    }

    /// The engine tells its ranks and its size. Limits that nobody set follow
    /// it; requests that are already here keep their place and stay unranked.
    ///
    /// # Errors
    /// The report is unusable, or names other ranks than the first one did;
    /// nothing changes.
    pub fn report_engine(&self, report: EngineReport) -> Result<Limits, ReportError> {
        self.shared.report_engine(&report)
    }

    /// Sets limits at run time; `None` leaves one as it is. Growth lets queued
    /// requests in at once. Shrinking revokes nothing: nobody enters until the
    /// count is below the new limit.
    ///
    /// # Errors
    /// A limit out of its range; nothing changes.
    pub fn set_limits(&self, settings: Settings) -> Result<Limits, LimitError> {
        self.shared.set_limits(settings)
    }

    /// Counts and limits of every lane and of the worker.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Waits until no turn of the queue is pending. For tests.
    pub fn settle(&self) {
        self.shared.settle();
    }

    /// Whether no turn of the queue is pending just now. For tests.
    pub fn is_settled(&self) -> bool {
        self.shared.turn.is_idle()
    }

    /// Stops the gate for good: whoever waits and whoever comes gets an error
    /// instead of a permit. Permits that are out stay good.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether the gate was stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }
}
