//! First tokens and ends of streams: the gateway's watcher, which sees each piece
//! once, beside a parser that reads all of the body again each time.

#[path = "../../gateway/tests/first_token/check.rs"]
mod check;
#[path = "../../gateway/tests/first_token/reference.rs"]
mod reference;

pub use check::check as first_token;
