//! What the benchmarks share: an adapter over gates, the gates and floors that are
//! compared, a check that each is what it claims before it is timed, and the ways
//! to time it. How it is measured, and what was found, is in `bench/NOTES.md`.
//!
//! ```sh
//! cargo run --release -p tidegate-bench --bin scoreboard    # the table; --quick
//! cargo run --release -p tidegate-bench --bin latency       # tails and plots; --quick
//! cargo run --release -p tidegate-bench --bin storms        # what others see; --quick
//! .ci/versus-nginx                                          # a hop, beside nginx; --quick
//! cargo bench -p tidegate-bench                             # micro paths
//! cargo bench -p tidegate-bench -- --test                   # each once, as a test
//! .ci/instructions                                          # counts that repeat
//! ```

pub mod heap;
pub mod judged;
pub mod latency;
pub mod ours;
pub mod peers;
pub mod proxies;
pub mod score;
pub mod selfcheck;
pub mod storm;
pub mod subject;
pub mod timing;
pub mod work;
