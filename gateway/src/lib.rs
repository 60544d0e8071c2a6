//! The gateway: everything around the gate that reads flags and environment,
//! opens sockets and speaks HTTP. The `tidegate` program is a thin `main`
//! over this library.

pub mod cli;
pub mod config;
pub mod demo;
pub mod engine;
pub mod load;
pub mod proxy;
pub mod worker;

/// The README's examples, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
