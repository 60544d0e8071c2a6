//! Membership and load over a real NATS server.

mod failing;
mod hostile;
mod joining;
mod nats;
mod secured;
// Each file uses its own part of this.
#[allow(dead_code)]
mod support;
