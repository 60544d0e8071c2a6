//! The load of the frontend's workers, and which of them are busy.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`threshold`] | the busy thresholds of a model |
//! | [`sample`] | what is said of one rank's load, and who says it |
//! | [`busy`] | the busy rules |
//! | `reported` | what sources have said of one rank, and how old it is |
//! | `own` | the frontend's own accounting |
//! | `ratio` | tokens from bytes |
//! | [`load`] | what the router reads |
//! | `state` | what is known of one worker's load |
//! | `table` | the thresholds in force, by model |
//! | [`snapshot`] | what metrics say of the workers |
//! | `shared` | what is known of one worker, and what all have in common |
//! | [`held`] | what a request takes of a worker |
//! | [`member`] | one worker, watched |
//! | `names`, [`page`] | what a metrics page says |
//! | `scrape` | a metrics page, read now and then |
//! | [`members`] | all workers, and the thresholds that they are judged by |
//! | [`sources`] | thresholds that nothing is known to judge by |
//! | [`args`] | flags and environment |
//! | [`admin`] | `/busy_threshold` |

pub mod admin;
pub mod args;
pub mod busy;
pub mod held;
pub mod load;
pub mod member;
pub mod members;
mod names;
mod own;
pub mod page;
mod ratio;
mod reported;
pub mod sample;
mod scrape;
mod shared;
pub mod snapshot;
pub mod sources;
mod state;
mod table;
pub mod threshold;

pub use args::{MonitorArgs, ThresholdArgs};
pub use held::Held;
pub use load::{Busy, Load, RankLoad};
pub use member::{Joining, Member};
pub use members::{Monitor, MonitorSettings};
pub use sample::{Sample, Source, Totals};
pub use state::Reading;
pub use threshold::{Threshold, Thresholds};
