//! The handle that permits, tickets and events hold.

use std::fmt;

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

impl Clone for Gate {
    fn clone(&self) -> Self {
        self.shared.add_handle();
        Gate {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.shared.drop_handle() {
            self.shared.turn.wake();
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.snapshot()).finish()
    }
}
