//! Permits: the capacity that an admitted request holds.

use std::fmt;

use crate::error::Lane;
use crate::handle::{GateRef, Handle};
use crate::hold::{Hold, Source};
use crate::lease::Lease;

/// A permit that borrows its gate.
pub type Permit<'g> = PermitOf<GateRef<'g>>;

/// A permit that keeps its gate alive: `'static`, for tasks and response bodies.
pub type OwnedPermit = PermitOf<Lease>;

/// The capacity that an admitted request holds: [`Permit`] or [`OwnedPermit`].
///
/// Dropping it, by a panic too, gives back what it still holds, and offers that
/// to the oldest queued request that fits. Forgetting it (`std::mem::forget`)
/// leaks its capacity for ever; the gate's running count shows that.
#[must_use = "dropping a permit ends the request"]
pub struct PermitOf<G: Handle> {
    gate: G,
    hold: Hold,
}

impl<G: Handle> PermitOf<G> {
    #[inline]
    pub(crate) fn new(gate: G, hold: Hold) -> Self {
        PermitOf { gate, hold }
    }

    /// The first generated token came: the request stops *waiting* and goes on
    /// *running*. Only the first call does anything.
    #[inline]
    pub fn first_token(&mut self) {
        if self.hold.is_waiting() {
            self.gate.shared().first_token(self.hold);
            self.hold = self.hold.streaming();
        }
    }

    /// Whether the first token has not come yet.
    pub fn is_waiting(&self) -> bool {
        self.hold.is_waiting()
    }

    /// The reported rank that the request is accounted to; `None` if unranked.
    pub fn rank(&self) -> Option<u32> {
        match self.lane() {
            Lane::Rank(id) => Some(id),
            Lane::Unspecified => None,
        }
    }

    /// The lane that the request is accounted to.
    pub fn lane(&self) -> Lane {
        self.gate.shared().lane_name(self.hold.lane())
    }

    /// Whether the request entered at once or waited in the queue.
    pub fn source(&self) -> Source {
        self.hold.source()
    }
}

impl<G: Handle> Drop for PermitOf<G> {
    #[inline]
    fn drop(&mut self) {
        self.gate.shared().give_back(self.hold);
    }
}

impl<G: Handle> fmt::Debug for PermitOf<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("lane", &self.lane())
            .field("source", &self.source())
            .field("waiting", &self.is_waiting())
            .finish()
    }
}
