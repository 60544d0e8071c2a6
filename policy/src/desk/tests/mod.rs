//! What becomes of whom at the desk.

mod holding;
mod office;
mod returning;
mod sharing;
