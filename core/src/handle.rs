//! The handles that permits, tickets and events hold.

use std::fmt;

use crate::lease::Lease;
use crate::shared::Shared;
use crate::sync::Arc;

/// Decides which requests enter one engine, which wait, and which are refused.
///
/// A `Gate` is a handle: clones share one gate. Every method may be called from
/// any thread and from any executor. A rank that the engine did not report
/// counts as no rank.
pub struct Gate {
    pub(crate) shared: Arc<Shared>,
}

/// A gate that is borrowed: what permits and tickets hold that do not keep it alive.
/// It is one step nearer to the gate's words than a `&Gate`.
#[derive(Clone, Copy)]
pub struct GateRef<'g> {
    shared: &'g Shared,
}

/// [`Lease`] or [`GateRef`]: whether a permit or ticket keeps its gate alive.
pub trait Handle: sealed::HasShared {}

impl Handle for Lease {}
impl Handle for GateRef<'_> {}

pub(crate) mod sealed {
    use super::{GateRef, Lease, Shared};

    pub trait HasShared {
        fn shared(&self) -> &Shared;
    }

    impl HasShared for Lease {
        #[inline]
        fn shared(&self) -> &Shared {
            self.shared()
        }
    }

    impl HasShared for GateRef<'_> {
        #[inline]
        fn shared(&self) -> &Shared {
            self.shared
        }
    }
}

impl Gate {
    #[inline]
    pub(crate) fn by_ref(&self) -> GateRef<'_> {
        GateRef {
            shared: &self.shared,
        }
    }

    #[inline]
    pub(crate) fn lease(&self) -> Lease {
        Lease::new(&self.shared)
    }
}

impl Clone for Gate {
    fn clone(&self) -> Self {
        self.shared.holders.add_handle();
        Gate {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if !self.shared.holders.drop_handle() {
            return;
        }
        // Models have no leases.
        #[cfg(not(tidegate_loom))]
        if !self.shared.holders.no_lease_is_out() {
            return crate::orphans::adopt(Arc::clone(&self.shared));
        }
        self.shared.turn.wake();
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.snapshot()).finish()
    }
}

impl fmt::Debug for GateRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GateRef")
            .field(&self.shared.snapshot())
            .finish()
    }
}
