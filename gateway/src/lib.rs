//! The gateway.

pub mod proxy;
