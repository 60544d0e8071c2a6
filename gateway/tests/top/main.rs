//! `tidegate top`: one frame as text, and what it shows in a terminal.

mod live;
mod once;
#[path = "../program/mod.rs"]
mod program;
#[path = "../stack/mod.rs"]
mod stack;
mod terminal;
