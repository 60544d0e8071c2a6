//! The gateway: everything around the gate that reads flags and environment,
//! opens sockets and speaks HTTP. The `tidegate` program is a thin `main`
//! over this library.
//!
//! A part imports only from parts above it, and so do the parts within each.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`cli`] | what the commands have in common |
//! | [`config`] | the gate's limits, from flags and environment |
//! | [`proxy`] | what stands between a client and an engine |
//! | [`server`] | what worker and frontend have in common |
//! | [`scrape`] | metrics of others, read |
//! | [`page`] | the built-in page of worker and frontend |
//! | [`engine`] | a simulated engine |
//! | [`policy`] | the policy's file, and the layer before a gate that follows it |
//! | [`monitor`](mod@monitor) | the load of workers, and which are busy |
//! | [`cluster`] | membership and load over NATS |
//! | [`worker`] | the gate in front of an engine |
//! | [`frontend`](mod@frontend) | requests sent to workers, or refused |
//! | [`size`] | a waiting limit from what was measured |
//! | [`load`] | a load generator |
//! | [`simulate`](mod@simulate) | a worker in virtual time |
//! | [`demo`] | engines, workers and load in one process |
//! | [`top`] | workers and frontends, watched in a terminal |
//! | [`program`] | the command line |

pub mod cli;
pub mod cluster;
pub mod config;
pub mod demo;
pub mod engine;
pub mod frontend;
pub mod load;
pub mod monitor;
pub mod page;
pub mod policy;
pub mod program;
pub mod proxy;
pub mod scrape;
pub mod server;
pub mod simulate;
pub mod size;
pub mod top;
pub mod worker;

/// The README's examples, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
