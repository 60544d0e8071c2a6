//! An open-loop load generator: requests start when their schedule says, not
//! when earlier ones have ended, as users do. Latencies count from the
//! *intended* start, so a generator that falls behind does not flatter anyone.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`planned`] | one request to be sent |
//! | [`arrivals`] | seeded, bursty schedules of requests |
//! | [`trace`] | schedules read from recorded traces |
//! | [`client`] | one request over HTTP, and how it ended |
//! | [`tally`] | outcomes and latencies added up |
//! | [`run`] | a schedule played against some URLs |
//! | [`command`] | `tidegate load` |

pub mod arrivals;
pub mod client;
pub mod command;
pub mod planned;
pub mod run;
pub mod tally;
pub mod trace;

pub use arrivals::{Arrivals, Mix};
pub use client::{Client, Outcome, RefusedBy, Target};
pub use planned::Planned;
pub use run::{Load, play};
pub use tally::Tally;
pub use trace::read_trace;
