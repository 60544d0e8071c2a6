//! The built-in page: the three axes of a worker or a frontend, live.
//!
//! Everything on it is read from `/metrics`, so that the two never differ; only the
//! last decisions come on top. While nobody looks nothing is read and nothing is kept.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`histogram`] | buckets, and quantiles of what is in them |
//! | `named` | the samples of one server on its page |
//! | [`policy`] | a policy, as the metrics of its server tell it |
//! | [`gate`] | a worker, as its metrics tell it |
//! | [`front`] | a frontend, as its metrics tell it |
//! | [`reading`] | all of it at one moment |
//! | `span` | by how much counts grew from one reading to another |
//! | [`refusals`] | refusals by reason, whoever refused |
//! | [`decisions`] | the last decisions, kept while somebody looks |
//! | [`snapshot`] | what is shown |
//! | `saturation` | the first two axes: device and gates |
//! | `quality` | the third: what clients get |
//! | [`history`] | readings of the last half minute, and what is shown of them |
//! | [`live`] | one sampler for all who look |
//! | [`serve`] | the page's routes, before those of a server |

pub mod decisions;
pub mod front;
pub mod gate;
pub mod histogram;
pub mod history;
pub mod live;
mod named;
pub mod policy;
mod quality;
pub mod reading;
pub mod refusals;
mod saturation;
pub mod serve;
pub mod snapshot;
mod span;

pub use decisions::Decisions;
pub use history::History;
pub use reading::Reading;
pub(crate) use serve::Page;
pub use snapshot::Snapshot;
