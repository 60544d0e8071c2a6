//! The worker over real sockets, in front of an engine that does exactly what a
//! test tells it to.

mod failing;
mod hiding;
mod leaving;
mod lifecycle;
mod passing;
mod refusing;
mod support;
mod tokens;
mod wire;
