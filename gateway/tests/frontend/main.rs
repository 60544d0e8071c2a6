//! The frontend over real sockets, before workers that do exactly what a test tells
//! them to, before real workers, and before engines without one.

mod asking;
mod busy;
mod codes;
mod coming_again;
mod failing;
mod held_again;
mod held_leaving;
mod holding;
mod leaving;
mod lifecycle;
mod measuring;
mod models;
mod modes;
mod passing;
#[path = "../program/mod.rs"]
mod program;
mod queue;
mod refusing;
mod running;
mod scripted;
mod sent_away;
mod support;
mod thresholds;
mod together;
// Each test file uses its own part of this.
#[allow(dead_code)]
#[path = "../worker/wire.rs"]
mod wire;
