//! Memory that all queued requests share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory that queued requests may fill with their bodies, shared by all of
/// them.
#[derive(Clone, Debug)]
pub struct BufferBudget {
    bytes: Arc<Semaphore>,
    total: u32,
}

impl BufferBudget {
    /// A budget of `total` bytes; 0 reads no body while its request is queued.
    #[must_use]
    pub fn new(total: u32) -> Self {
        Self {
            bytes: Arc::new(Semaphore::new(total as usize)),
            total,
        }
    }

    /// All of it, used or not.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Waits until `len` bytes are free (the whole budget, if that is less), in
    /// the order of asking.
    pub(super) async fn take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let len = u32::try_from(len).unwrap_or(u32::MAX).min(self.total);
        Arc::clone(&self.bytes).acquire_many_owned(len).await.ok()
    }
}
