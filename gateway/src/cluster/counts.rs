//! What is counted about NATS, on either side.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metrics::Recorder;

use super::codec::Unusable;
use crate::server::series::Series;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A worker's announcement of itself.
    Member,
    /// Its load.
    Load,
    /// Its load, as Dynamo says it.
    Dynamo,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Member, Self::Load, Self::Dynamo];

    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Load => "load",
            Self::Dynamo => "dynamo",
        }
    }
}

/// Why a message changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Too long, not what it should be, or out of range.
    Unusable,
    /// Of a version that is not known.
    Version,
    /// About another worker than its subject says.
    OtherName,
    /// Of a worker, or of a start of it, that has not announced itself.
    UnknownWorker,
    /// Not newer than what is known.
    Replayed,
    /// More than a worker may say in a second.
    Flood,
    /// Outside `--allow-workers`.
    NotAllowed,
    /// Where another worker is.
    TakenUrl,
    /// More workers than a frontend keeps.
    TooMany,
    /// It came faster than it was read.
    SlowConsumer,
}

impl Dropped {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Unusable,
        Self::Version,
        Self::OtherName,
        Self::UnknownWorker,
        Self::Replayed,
        Self::Flood,
        Self::NotAllowed,
        Self::TakenUrl,
        Self::TooMany,
        Self::SlowConsumer,
    ];

    /// The metrics label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::Version => "version",
            Self::OtherName => "other_name",
            Self::UnknownWorker => "unknown_worker",
            Self::Replayed => "replayed",
            Self::Flood => "flood",
            Self::NotAllowed => "not_allowed",
            Self::TakenUrl => "taken_url",
            Self::TooMany => "too_many",
            Self::SlowConsumer => "slow_consumer",
        }
    }
}

impl From<Unusable> for Dropped {
    fn from(why: Unusable) -> Self {
        match why {
            Unusable::TooLarge | Unusable::Malformed | Unusable::Range => Self::Unusable,
            Unusable::Version => Self::Version,
            Unusable::OtherName => Self::OtherName,
        }
    }
}

/// Which side counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A worker, which says.
    Says,
    /// A frontend, which hears.
    Hears,
}

/// The counts of one connection. Relaxed everywhere: statistics, nothing is read
/// through them.
#[derive(Debug)]
pub struct Counts {
    side: Side,
    connected: AtomicBool,
    lost: AtomicU64,
    /// Said or heard, by kind.
    messages: [AtomicU64; Kind::ALL.len()],
    dropped: [AtomicU64; Dropped::ALL.len()],
    live: AtomicU64,
    lapsed: AtomicU64,
}

impl Counts {
    /// Nothing yet.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            connected: AtomicBool::default(),
            lost: AtomicU64::default(),
            messages: Default::default(),
            dropped: Default::default(),
            live: AtomicU64::default(),
            lapsed: AtomicU64::default(),
        }
    }

    /// The connection stands, or no longer does. Whether one was lost before.
    pub fn connected(&self, connected: bool) -> bool {
        let before = self.connected.swap(connected, Ordering::Relaxed);
        if before && !connected {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.lost.load(Ordering::Relaxed) > 0
    }

    /// Whether it stands.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// A message was said, or heard.
    pub fn message(&self, kind: Kind) {
        self.messages[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Messages so far.
    #[must_use]
    pub fn messages(&self, kind: Kind) -> u64 {
        self.messages[kind as usize].load(Ordering::Relaxed)
    }

    /// A message that was heard changed nothing.
    pub fn dropped(&self, why: Dropped) {
        self.dropped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// So many members are known.
    pub fn members(&self, live: u64, lapsed: u64) {
        self.live.store(live, Ordering::Relaxed);
        self.lapsed.store(lapsed, Ordering::Relaxed);
    }

    /// Writes everything as it is now to `recorder`, each name after `prefix`.
    pub fn publish(&self, recorder: &impl Recorder, prefix: &str) {
        let prefix = format!("{prefix}cluster_");
        let series = Series::new(recorder, &prefix);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        series.describe("connected", "1 while NATS is reached");
        series.flag("connected", &[], self.is_connected());
        let lost = "disconnections_total";
        series.describe(lost, "Connections to NATS that were lost");
        series.counter(lost, &[], of(&self.lost));
        let (name, text, kinds) = match self.side {
            Side::Says => (
                "published_total",
                "Messages said over NATS",
                &Kind::ALL[..2],
            ),
            Side::Hears => ("received_total", "Messages heard over NATS", &Kind::ALL[..]),
        };
        series.describe(name, text);
        for kind in kinds {
            series.counter(name, &[("kind", kind.label())], self.messages(*kind));
        }
        if self.side == Side::Says {
            return;
        }
        let dropped = "dropped_total";
        series.describe(
            dropped,
            "Messages heard over NATS that changed nothing, by why",
        );
        for why in Dropped::ALL {
            let value = of(&self.dropped[why as usize]);
            series.counter(dropped, &[("reason", why.label())], value);
        }
        series.describe(
            "members",
            "Workers that announced themselves; lapsed ones are silent and still answer",
        );
        for (state, count) in [("live", &self.live), ("lapsed", &self.lapsed)] {
            series.gauge("members", &[("state", state)], of(count) as f64);
        }
    }
}
