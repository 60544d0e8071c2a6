//! Models of the gate's races: every interleaving of a few calls, up to a bound
//! on preemptions, run on the real code.
//!
//! One file of `tests/` a subject, and each model a story of two or three
//! threads. A lost wake-up shows as a model that cannot finish, so the waiting
//! itself is the assertion. One command runs them all and prints how many
//! executions each explored:
//!
//! ```sh
//! RUSTFLAGS="--cfg tidegate_loom" cargo test -p tidegate-loom-tests --profile loom --target-dir target/loom
//! ```
//!
//! Those that take minutes run only with `TIDEGATE_MODELS=all`; and
//! `LOOM_MAX_PREEMPTIONS=4` raises the bound of every model. The gate sees loom
//! through its own switch, `--cfg tidegate_loom`, and so does this crate:
//! without it there is nothing here but this page.
//!
//! A model of the gate's pieces (`tidegate::model`) is smaller than one of a whole
//! gate, and its bound can be higher. A model that cannot fail proves nothing:
//! `.ci/canaries` breaks the core, one labelled edge or re-check at a time, and
//! runs the model that must notice (`canaries.toml`).
//!
//! What loom does not see: more than five threads, load buffering, and what
//! goes through std's own `Arc` and channels. It takes SeqCst accesses for AcqRel
//! ones; fences it takes as they are. And it remembers only the last access to
//! each word when it looks for orders to try: if one thread reads a word, then
//! another reads and writes it, the first is not tried after the second. So the
//! thread that only reads is spawned, and the one that writes is the model's own.

#[cfg(tidegate_loom)]
mod check;
#[cfg(tidegate_loom)]
mod gates;

#[cfg(tidegate_loom)]
pub use check::{check, check_apart, check_at_length};
#[cfg(tidegate_loom)]
pub use gates::{
    enter, gate, granted, handle, idle, is_in, look, manual, queue, ranked, report, settings,
    threaded, with_ranks,
};
