//! What stands between a client and an engine, whatever decides on admission:
//! the connection to the engine, the headers that may cross, the bodies that
//! pass through byte for byte, and the watcher that reads beside them.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | [`unread`] | clients that send what nobody reads |
//! | `writing` | clients that do not read |
//! | [`watched`] | clients that leave |
//! | [`patience`] | clients that send slowly |
//! | [`headers`] | which headers cross |
//! | `pieces` | a body in pieces, read as one |
//! | [`member`] | one member of a JSON body |
//! | [`rank_field`] | the rank in a body |
//! | `sse` | events out of a stream's bytes |
//! | `shapes` | what an event or an answer means |
//! | [`first_token`] | the watcher that sees generation begin |
//! | [`silence`] | engines that say nothing |
//! | [`budget`] | memory that queued requests share |
//! | [`request_body`] | bodies on their way to the engine |
//! | [`relay`] | bodies on their way back |
//! | [`paced`] | those that their client does not take |
//! | [`engine_url`] | the engine's address |
//! | [`engine`] | connections to the engine |
//! | [`models`] | which models it lists |

pub mod budget;
pub mod engine;
pub mod engine_url;
pub mod first_token;
pub mod headers;
pub mod member;
pub mod models;
pub mod paced;
pub mod patience;
pub(crate) mod pieces;
pub mod rank_field;
pub mod relay;
pub mod request_body;
mod shapes;
pub mod silence;
mod sse;
pub mod unread;
pub mod watched;
mod writing;
