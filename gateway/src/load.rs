//! An open-loop load generator: requests start when their schedule says, not
//! when earlier ones have ended, as users do. Latencies count from the
//! *intended* start, so a generator that falls behind does not flatter anyone.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`arrivals`] | seeded, bursty schedules of requests |
//! | [`trace`] | schedules read from recorded traces |
//! | [`client`] | one request over HTTP, and how it ended |
//! | [`tally`] | outcomes and latencies added up |
//! | [`run`] | a schedule played against some URLs |
//! | [`command`] | `tidegate load` |

pub mod arrivals;
pub mod client;
pub mod command;
pub mod run;
pub mod tally;
pub mod trace;

use std::time::Duration;

pub use arrivals::{Arrivals, Mix};
pub use client::{Client, Outcome, Target};
pub use run::{Load, play};
pub use tally::Tally;
pub use trace::read_trace;

/// One request to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Planned {
    /// When it starts, from the beginning of the schedule.
    pub at: Duration,
    /// Length of its prompt, in tokens.
    pub prompt_tokens: u32,
    /// Tokens it wants generated.
    pub output_tokens: u32,
    /// The data-parallel rank it names, if any.
    pub rank: Option<u32>,
    /// The client leaves this long after the start, unless it has its answer.
    pub leaves_after: Option<Duration>,
}
