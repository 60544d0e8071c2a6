//! Membership and load over a real NATS server.

mod dynamo;
mod failing;
mod hostile;
mod joining;
// The figures use what this does not.
#[allow(dead_code)]
mod nats;
#[path = "../program/mod.rs"]
mod program;
mod secured;
#[allow(dead_code)]
mod support;
// Each test file uses its own part of this.
#[allow(dead_code)]
#[path = "../worker/wire.rs"]
mod wire;
