//! The policy: its file, and the layer that holds requests before a worker's gate, or at
//! a frontend.
//!
//! What is decided and why is in `tidegate-policy`, on values. Here are the lock
//! around its desk, the tasks that tell it the time and the engine's state, and
//! what a request holds while it is on its way. Without a policy none of this is
//! there.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`read`] | a policy file, read |
//! | [`command`] | `tidegate policy` |
//! | [`args`] | a worker's and a frontend's flags, and the [`PolicyConfig`] that they make |
//! | [`asked`] | what a request's body asks for |
//! | `door` | what is behind the desk: a worker's gate, or a frontend's workers |
//! | `layer` | the desk behind its lock, and who is told what |
//! | `inside` | what a request holds that is inside the engine |
//! | `entering` | a request's way through the desk |
//! | `keeper` | the task that lets in who is next, on time |
//! | `sampling` | the task that reads the engine's and the device's state |
//! | `reload` | the file read again, on SIGHUP |
//! | `nvml` | the device's state from NVIDIA's library, behind the feature `nvml` |
//! | `show` | the policy's metrics |

pub mod args;
pub mod asked;
pub mod command;
mod door;
mod entering;
mod inside;
mod keeper;
mod layer;
#[cfg(feature = "nvml")]
mod nvml;
pub mod read;
mod reload;
mod sampling;
mod show;

pub use args::{FollowFlags, PolicyConfig, PolicyFlags};
pub use command::{PolicyArgs, run};
pub(crate) use door::Door;
pub(crate) use entering::{Arrived, GateAlone, Held, Verdict};
pub(crate) use inside::Inside;
pub(crate) use keeper::keep;
pub(crate) use layer::{Layer, Refused, Size};
pub(crate) use reload::reload_until;
pub(crate) use sampling::{Sampling, sample};
pub use tidegate_policy::settings::Settings;

#[cfg(test)]
#[path = "crowd_tests.rs"]
pub(crate) mod crowd;
