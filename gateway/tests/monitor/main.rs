//! The load monitor, from outside: pages, accounting, `/busy_threshold`, and scraping
//! over real sockets.

#[path = "../stack/mod.rs"]
mod stack;

mod accounting;
mod busy_threshold;
mod pages;
mod scraping;
mod served;
mod shown;
