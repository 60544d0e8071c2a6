//! The simulated engine over real sockets.

mod answers;
mod leaving;
mod lifecycle;
mod misbehaving;
mod support;
