//! The gateway.
pub mod engine;
