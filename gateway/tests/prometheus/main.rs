//! The worker's metrics, as Prometheus itself reads them.
//!
//! Needs Prometheus' programs; where they are missing, `install.sh` unpacks
//! Debian's package, without installing it.

mod conservation;
mod deploy;
mod lint;
#[path = "../program/mod.rs"]
mod program;
mod server;
mod sizing;
#[path = "../stack/mod.rs"]
mod stack;
