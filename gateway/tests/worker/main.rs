//! The worker over real sockets, in front of an engine that does exactly what a
//! test tells it to.

mod asking;
mod bodies;
mod cases;
mod connections;
mod counting;
mod dialects;
mod failing;
mod hiding;
mod leaving;
mod lifecycle;
mod operating;
mod overload;
mod oversize;
mod passing;
mod progress;
mod refusing;
mod reporting;
mod slow;
mod smuggling;
mod support;
mod tokens;
mod trusting;
mod wire;
