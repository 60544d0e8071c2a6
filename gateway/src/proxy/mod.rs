//! What stands between a client and an engine, whatever decides on admission:
//! the connection to the engine, the headers that may cross, the bodies that
//! pass through byte for byte, and the watcher that reads beside them.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`watched`] | clients that leave |
//! | [`headers`] | which headers cross |
//! | `sse` | events out of a stream's bytes |
//! | `shapes` | what an event or an answer means |
//! | [`first_token`] | the watcher that sees generation begin |
//! | [`silence`] | engines that say nothing |
//! | [`body`] | bodies that pass through |
//! | [`engine`] | connections to the engine |

pub mod body;
pub mod engine;
pub mod first_token;
pub mod headers;
mod shapes;
pub mod silence;
mod sse;
pub mod watched;
