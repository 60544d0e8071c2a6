//! Membership and load over a real NATS server.

mod failing;
mod hostile;
mod joining;
// The figures use what this does not.
#[allow(dead_code)]
mod nats;
mod secured;
#[allow(dead_code)]
mod support;
