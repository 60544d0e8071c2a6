//! The scoreboard: rows of contenders, measured in turn, and judged.

mod judge;
mod machine;
mod report;
mod rows;
mod run;

pub use judge::{Judged, Outcome, Series, Verdict};
pub use machine::{Machine, Noise};
pub use report::{json, markdown};
pub use rows::all;
pub use run::run;

use std::time::Duration;

use crate::timing::Reading;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds of a row; in each, every contender is read once.
    pub rounds: usize,
    /// How long one reading lasts.
    pub span: Duration,
    /// Hand-overs in one reading.
    pub hops: usize,
    /// Rounds of the rows whose readings take long.
    pub long_rounds: usize,
    /// How often a two-thread reading that did not find both cores is repeated.
    pub repeats: usize,
}

impl Plan {
    /// Under three minutes.
    pub const QUICK: Plan = Plan {
        rounds: 7,
        span: Duration::from_millis(10),
        hops: 60,
        long_rounds: 3,
        repeats: 6,
    };

    /// Under twenty minutes.
    pub const FULL: Plan = Plan {
        rounds: 101,
        span: Duration::from_millis(10),
        hops: 100,
        long_rounds: 11,
        repeats: 6,
    };
}

/// One who is measured in a row.
pub struct Contender {
    /// As the table calls it.
    pub name: String,
    /// Takes one reading.
    pub measure: Box<dyn FnMut(&Plan) -> Reading>,
}

impl Contender {
    /// A contender by its name and how to read it.
    pub fn new(
        name: impl Into<String>,
        measure: impl FnMut(&Plan) -> Reading + 'static,
    ) -> Contender {
        Contender {
            name: name.into(),
            measure: Box::new(measure),
        }
    }

    /// Under another name.
    #[must_use]
    pub fn called(mut self, name: impl Into<String>) -> Contender {
        self.name = name.into();
        self
    }
}

/// What one figure must not exceed.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// The peer that ours is divided by; `None` for a bar in the row's own unit.
    pub against: Option<usize>,
    /// The most that meets it; `None` where there is only something to try for.
    pub at_most: Option<f64>,
    /// What to try for once it is met.
    pub stretch: Option<f64>,
    /// False where the bar asks for more than can be measured: then the ratio
    /// is told and not judged.
    pub judged: bool,
}

impl Bar {
    const NONE: Bar = Bar {
        against: None,
        at_most: None,
        stretch: None,
        judged: true,
    };

    /// At most this multiple of a peer, by its place among the row's peers.
    pub fn times(at_most: f64, peer: usize) -> Bar {
        Bar {
            against: Some(peer),
            at_most: Some(at_most),
            ..Bar::NONE
        }
    }

    /// At most this, in the row's unit.
    pub fn absolute(at_most: f64) -> Bar {
        Bar {
            at_most: Some(at_most),
            ..Bar::NONE
        }
    }

    /// Nothing that must be met: a multiple of a peer to try for.
    pub fn wish(stretch: f64, peer: usize) -> Bar {
        Bar {
            against: Some(peer),
            stretch: Some(stretch),
            ..Bar::NONE
        }
    }

    /// With something further to try for.
    #[must_use]
    pub fn stretch(self, stretch: f64) -> Bar {
        Bar {
            stretch: Some(stretch),
            ..self
        }
    }

    /// Told, and not judged.
    #[must_use]
    pub fn told(self) -> Bar {
        Bar {
            judged: false,
            ..self
        }
    }
}

/// What a row's figures are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
}

/// One line of the table.
pub struct Row {
    /// What is measured.
    pub name: &'static str,
    /// What the figures are in.
    pub unit: Unit,
    /// Whether a reading takes so long that there are fewer.
    pub long: bool,
    /// Ours.
    pub ours: Contender,
    /// Those beside it.
    pub peers: Vec<Contender>,
    /// What ours is held to.
    pub bars: Vec<Bar>,
    /// How it is measured, where the name does not say.
    pub note: &'static str,
}
