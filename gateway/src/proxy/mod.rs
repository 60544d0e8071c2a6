//! What stands between a client and an engine, whatever decides on admission:
//! the connection to the engine, the headers that may cross, the bodies that
//! pass through byte for byte, and the watcher that reads beside them.

pub mod body;
pub mod engine;
pub mod first_token;
pub mod headers;
mod shapes;
mod sse;
