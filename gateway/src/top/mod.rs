//! `tidegate top`: the three axes of workers and frontends in a terminal, from their
//! `/metrics` alone.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | `say` | numbers as they are said |
//! | `fit` | what fits into a frame, in columns and lines |
//! | `axes` | the three axes, as names and values |
//! | `tables` | the tables, as rows |
//! | [`draw`](mod@draw) | all of it as a frame |
//! | `watch` | pages, read now and then |
//! | `keys` | what happens at the terminal |
//! | [`command`] | the command |

mod axes;
pub mod command;
pub mod draw;
mod fit;
mod keys;
mod say;
mod tables;
mod watch;

pub use command::{TopArgs, run};
