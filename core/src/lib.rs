//! Admission control for inference workers: decides which requests enter an
//! engine, which wait, and which are refused, before they cost engine capacity.
//!
//! A [`Gate`] stands before one engine. Each data-parallel rank has three limits:
//! requests *running* (admitted and not finished), requests *waiting* (the part
//! of them whose first token has not come), and requests *queued* in the gate.
//! The worker's capacity is the sum over its ranks, shared with requests that
//! name no rank. [`spec`] holds the rules as a page of plain code.
//!
//! ```
//! use tidegate::{Admission, EngineReport, Gate};
//!
//! let gate = Gate::builder().engine_request_limit(2).request_queue_limit(1).build()?;
//! gate.report_engine(EngineReport { ranks: vec![0, 1], max_num_seqs: Some(256) })?;
//!
//! let mut permit = gate.try_admit(Some(1))?;
//! permit.first_token(); // the engine streams: no longer waiting, still running
//! drop(permit);         // the stream ended
//!
//! match gate.request(Some(1))? {
//!     Admission::Admitted(permit) => drop(permit),
//!     Admission::Queued(ticket) => drop(ticket.wait()?),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does no I/O, reads no environment and needs no async runtime:
//! plain threads call [`Gate::admit_blocking`], tasks of any executor await
//! [`Gate::admit`].

// The order in which they build on each other is in DESIGN.md.
mod admit;
mod announce;
mod arrive;
mod balance;
mod budget;
mod chunks;
mod configure;
mod counters;
mod engine_limits;
mod enqueue;
mod error;
mod free;
mod gate;
mod give_back;
mod handle;
mod hold;
mod holders;
mod lease;
pub mod limits;
mod listeners;
mod lists;
mod marks;
pub mod metrics;
#[cfg(tidegate_loom)]
#[doc(hidden)]
pub mod model;
mod observe;
#[cfg(not(tidegate_loom))]
mod orphans;
mod park;
mod pass;
mod permit;
mod publish;
mod queue;
mod queued;
mod reached;
mod refuse;
mod room;
mod run;
mod share;
mod shared;
mod shut;
mod slots;
mod snapshot;
pub mod spec;
#[cfg(tidegate_stall)]
#[doc(hidden)]
pub mod stall;
mod state;
mod stripe;
mod sync;
mod ticket;
mod turn;
mod waker;
mod wakers;
mod word;

pub use admit::{Admission, AdmissionOf, AdmissionOwned, Admit, AdmitOf, AdmitOwned};
pub use error::{Counts, Lane, Limit, Overload, Refusal, Rejection, Scope, Stopped};
pub use gate::Builder;
pub use handle::{Gate, GateRef, Handle};
pub use hold::Source;
pub use lease::Lease;
pub use limits::{EngineReport, LimitError, Limits, ReportError, Settings};
pub use permit::{OwnedPermit, Permit, PermitOf};
pub use room::Room;
pub use shared::Dispatch;
pub use snapshot::{LaneSnapshot, Snapshot};
pub use ticket::{OwnedTicket, Ticket, TicketOf, WaitError};
