//! `tidegate top`: the three axes of workers and frontends in a terminal, from their
//! `/metrics` alone.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`draw`](mod@draw) | a snapshot as a frame |
//! | `watch` | pages, read now and then |
//! | [`command`] | the command |

pub mod command;
pub mod draw;
mod watch;

pub use command::{TopArgs, run};
