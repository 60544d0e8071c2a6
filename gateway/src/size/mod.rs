//! `tidegate size`: an engine request waiting limit from what was measured, by
//! Little's law.
//!
//! The mean number of requests that wait for their first token, `L`, is the rate
//! at which requests are admitted, `C`, times the mean time that each waits: so
//! `L / C` is that time, and `L`, rounded up, is what the engine needs at that load.
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`reading`] | the gate's metrics at one moment |
//! | [`unusable`] | why a window says nothing |
//! | [`window`] | what became of one lane's counts in a window |
//! | [`little`] | the arithmetic |
//! | [`live`] | readings from `/metrics` |
//! | [`stored`] | readings from a Prometheus server |
//! | [`answer`] | the outcome in words and as JSON |
//! | [`command`] | the command |

pub mod answer;
pub mod command;
pub mod little;
pub mod live;
pub mod reading;
pub mod stored;
pub mod unusable;
pub mod window;

pub use little::{Sizing, size};
pub use reading::Reading;
pub use unusable::Unusable;
