//! The built-in page, in a real browser.
//!
//! Needs Debian's packages `chromium` and `chromium-driver`.

mod browser;
mod looks;
mod pictures;
#[path = "../program/mod.rs"]
mod program;
mod routes;
mod shown;
#[path = "../stack/mod.rs"]
mod stack;
