//! Why a request waits or is refused.
//!
//! Each reason has one name, under which it reaches the client (in the `details`
//! of the refusal's body) and labels a counter.

use std::fmt;

/// Why a request waits or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The memory that it needs is not free.
    InsufficientMemory,
    /// Its class's promise would likely be broken.
    SloViolationRisk,
    /// It was held for as long as its class allows.
    QueueTimeout,
    /// As many are held as may be.
    QueueFull,
    /// The limit is lowered because the engine has been idle.
    ColdStart,
    /// Memory is short, and its class is not critical.
    NoncriticalShed,
    /// As many requests run as the limit in force allows.
    ConcurrencyLimit,
    /// Its class has its share, and what is free is kept for others.
    RoomKept,
    /// Its class has used up its rate.
    RateLimit,
    /// It needs more memory than the engine has at all.
    TooLarge,
}

impl Reason {
    /// All of them, in the order of [`Reason::index`].
    pub const ALL: [Reason; 10] = [
        Reason::InsufficientMemory,
        Reason::SloViolationRisk,
        Reason::QueueTimeout,
        Reason::QueueFull,
        Reason::ColdStart,
        Reason::NoncriticalShed,
        Reason::ConcurrencyLimit,
        Reason::RoomKept,
        Reason::RateLimit,
        Reason::TooLarge,
    ];

    /// Its name for clients and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::InsufficientMemory => "insufficient_memory",
            Reason::SloViolationRisk => "slo_violation_risk",
            Reason::QueueTimeout => "queue_timeout",
            Reason::QueueFull => "queue_full",
            Reason::ColdStart => "cold_start",
            Reason::NoncriticalShed => "noncritical_shed",
            Reason::ConcurrencyLimit => "concurrency_limit",
            Reason::RoomKept => "room_kept",
            Reason::RateLimit => "rate_limit",
            Reason::TooLarge => "too_large",
        }
    }

    /// Whether it may have passed when the request comes again.
    #[must_use]
    pub fn may_pass(self) -> bool {
        self != Reason::TooLarge
    }

    /// Whether it is room that is missing, rather than time or leave.
    #[must_use]
    pub fn wants_room(self) -> bool {
        matches!(
            self,
            Reason::InsufficientMemory
                | Reason::QueueFull
                | Reason::ColdStart
                | Reason::ConcurrencyLimit
                | Reason::RoomKept
        )
    }

    /// Its place in [`Reason::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place_and_a_name_of_its_own() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), at);
            let same = Reason::ALL.iter().filter(|r| r.name() == reason.name());
            assert_eq!(same.count(), 1, "{reason}");
            let plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(reason.to_string().chars().all(plain), "{reason}");
        }
    }
}
