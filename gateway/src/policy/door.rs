//! What a policy holds requests before: a worker's gate, or something like it.

use std::fmt::Debug;

use tidegate::{Gate, OwnedPermit, Settings as GateSettings};
use tidegate_policy::desk::Entry;
use tracing::warn;

/// What is behind the desk. All of it is asked under the desk's lock, but for
/// [`room`](Self::room).
pub(crate) trait Door: Debug + Send + Sync + Sized + 'static {
    /// What a request says that it wants of it.
    type Wanted: Debug + Send;

    /// What a request holds that went through.
    type Permit: Debug + Send;

    /// Lets a request through if there is room now.
    fn enter(&self, wanted: &Self::Wanted) -> Entry<Self::Permit>;

    /// Whether there is room, for a policy that only observes; `None` where nobody can
    /// tell without going through.
    fn has_room(&self, wanted: &Self::Wanted) -> Option<bool>;

    /// Fires when there may be room that there was not before this call.
    fn room(&self) -> impl Future<Output = ()> + Send;

    /// Puts the policy's limit in force. `false` if that did not work.
    fn set_limit(&self, limit: u32) -> bool;
}

/// A worker's gate: a request wants a rank, or any.
impl Door for Gate {
    type Wanted = Option<u32>;
    type Permit = OwnedPermit;

    fn enter(&self, rank: &Option<u32>) -> Entry<OwnedPermit> {
        match self.enter_if_room_owned(*rank) {
            Some(permit) => Entry::In(permit),
            None if rank.is_some() => Entry::RankFull,
            None => Entry::Full,
        }
    }

    fn has_room(&self, _: &Option<u32>) -> Option<bool> {
        None
    }

    fn room(&self) -> impl Future<Output = ()> + Send {
        Gate::room(self)
    }

    fn set_limit(&self, limit: u32) -> bool {
        let settings = GateSettings {
            engine_request_limit: Some(limit),
            ..GateSettings::default()
        };
        let set = self.set_limits(settings);
        if let Err(error) = &set {
            warn!(limit, %error, "the policy's limit was not usable");
        }
        set.is_ok()
    }
}
