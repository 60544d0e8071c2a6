//! Configuration of the gate: flags and environment in, limits out.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`setting`] | the three settings: their names, ranges and defaults |
//! | [`ranks`] | lists of data-parallel ranks such as `0-7` |
//! | [`resolve()`] | the pure function that picks a value for each, and says where it came from |
//! | [`args`] | the flags, ready to be flattened into a command's arguments |
//! | [`show`] | `tidegate config`, which prints the outcome |

pub mod args;
pub mod ranks;
pub mod resolve;
pub mod setting;
pub mod show;

pub use args::LimitArgs;
pub use ranks::{Ranks, parse_ranks};
pub use resolve::{Effective, Resolved, Source, Warning, resolve};
pub use setting::Setting;
