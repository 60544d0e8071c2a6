//! Three axes at one glance.
//!
//! | axis | question | made of |
//! | --- | --- | --- |
//! | saturation of the GPU | how full is the device? | utilisation, multiprocessors, bandwidth, memory |
//! | saturation of concurrency | how full is the gate? | in flight, queued, refused per second |
//! | quality of service | what do clients get? | p50, p99, p99.9, goodput, attainment, by class |
//!
//! They are independent: a GPU at 98 % may serve everybody in time, and one at
//! 40 % may be refusing. All three are needed to tell which it is.

use std::fmt;
use std::time::Duration;

use crate::published::Reading;
use crate::quality::Attained;

/// How full the gate is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Concurrency {
    /// Requests in the engine.
    pub in_flight: u64,
    /// Requests held.
    pub queued: u64,
    /// Requests refused per second.
    pub refused_per_second: f64,
}

/// Turns a counter of refusals into a rate.
#[derive(Clone, Copy, Debug)]
pub struct RefusalRate {
    at: Duration,
    refused: u64,
}

impl RefusalRate {
    /// Starts at `now`, with what the counter says then.
    #[must_use]
    pub fn new(now: Duration, refused: u64) -> Self {
        RefusalRate { at: now, refused }
    }

    /// Refusals per second since the last call; 0 when no time has passed or
    /// the counter fell.
    pub fn observe(&mut self, now: Duration, refused: u64) -> f64 {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        let more = refused.saturating_sub(self.refused);
        *self = RefusalRate { at: now, refused };
        if seconds > 0.0 {
            more as f64 / seconds
        } else {
            0.0
        }
    }
}

/// The three axes. Prints as a few lines of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance {
    /// The GPU, if its state is fresh; its age or absence otherwise.
    pub gpu: Reading,
    /// The gate.
    pub concurrency: Concurrency,
    /// Each class by its name.
    pub quality: Vec<(String, Attained)>,
}

impl fmt::Display for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gpu          ")?;
        match &self.gpu {
            Reading::Missing => writeln!(f, "no state yet: the gate alone decides")?,
            Reading::Stale { age } => {
                let seconds = age.as_secs_f64();
                writeln!(f, "state is {seconds:.1} s old: the gate alone decides")?;
            }
            Reading::Fresh(state) => {
                let device = &state.device;
                for (name, share) in [
                    ("busy", device.utilisation),
                    ("sm", device.sm_utilisation),
                    ("bandwidth", device.memory_bandwidth),
                    ("memory", state.memory.map(|memory| memory.share())),
                ] {
                    write!(f, "{name} {}  ", Percent(share))?;
                }
                writeln!(f)?;
            }
        }
        let Concurrency {
            in_flight,
            queued,
            refused_per_second,
        } = self.concurrency;
        writeln!(
            f,
            "concurrency  in flight {in_flight}  queued {queued}  refused {refused_per_second:.1}/s"
        )?;
        for (class, attained) in &self.quality {
            write!(f, "{class:<12} goodput {:.1}/s  ", attained.goodput)?;
            write!(f, "attainment {}  ", Percent(attained.attainment))?;
            match attained.first_token_ms {
                Some([p50, p99, p999]) => writeln!(
                    f,
                    "first token p50 {p50:.0} ms  p99 {p99:.0} ms  p99.9 {p999:.0} ms"
                )?,
                None => writeln!(f, "no answers")?,
            }
        }
        Ok(())
    }
}

/// A share as a percentage, or that it is not known.
struct Percent(Option<f64>);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(share) => write!(f, "{:.0}%", share * 100.0),
            None => f.write_str("?"),
        }
    }
}

#[cfg(test)]
#[path = "glance_tests.rs"]
mod tests;
