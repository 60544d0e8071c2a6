//! What an owned permit or ticket keeps its gate alive with.

use std::fmt;

pub use imp::Lease;

#[cfg(not(tidegate_loom))]
mod imp {
    use std::ptr::NonNull;

    use crate::shared::Shared;
    use crate::sync::Arc;

    /// A gate that is kept alive: what owned permits and tickets hold. Unlike a
    /// clone of the [`Gate`](crate::Gate), it is counted where its thread is.
    /// A gate that has nothing else left is freed within 50 ms after the last of these.
    pub struct Lease {
        shared: NonNull<Shared>,
    }

    // SAFETY: it stands for a shared reference, and `Shared` is Sync.
    unsafe impl Send for Lease {}
    // SAFETY: as above.
    unsafe impl Sync for Lease {}

    impl Lease {
        /// For whoever has a handle of this gate.
        #[inline]
        pub(crate) fn new(shared: &Arc<Shared>) -> Self {
            shared.holders.stripe().take();
            Lease {
                shared: NonNull::from(&**shared),
            }
        }

        #[inline]
        pub(crate) fn shared(&self) -> &Shared {
            // SAFETY: it was taken by a handle. Whoever drops the last of the gate's
            // `Arc`s had a handle, and leaves another to `orphans` while leases are out;
            // or it has seen that handles and leases are gone.
            unsafe { self.shared.as_ref() }
        }
    }

    impl Drop for Lease {
        #[inline]
        fn drop(&mut self) {
            self.shared().holders.stripe().give_back();
        }
    }
}

/// In models of whole gates it is counted as a handle is: a thread that looks for
/// leases would be one more in each of them. Leases have models of their own.
#[cfg(tidegate_loom)]
mod imp {
    use crate::shared::Shared;
    use crate::sync::Arc;

    /// A gate that is kept alive.
    pub struct Lease {
        shared: Arc<Shared>,
    }

    impl Lease {
        pub(crate) fn new(shared: &Arc<Shared>) -> Self {
            shared.holders.add_handle();
            let shared = Arc::clone(shared);
            Lease { shared }
        }

        pub(crate) fn shared(&self) -> &Shared {
            &self.shared
        }
    }

    impl Drop for Lease {
        fn drop(&mut self) {
            if self.shared.holders.drop_handle() {
                self.shared.turn.wake();
            }
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease")
            .field(&self.shared().snapshot())
            .finish()
    }
}
