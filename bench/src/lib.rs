//! What the benchmarks share: an adapter over gates, the gates that are
//! compared, and a check that each is a gate at all before it is timed.
//!
//! ```sh
//! cargo bench -p tidegate-bench             # figures
//! cargo bench -p tidegate-bench -- --test   # each benchmark once, as a test
//! ```

pub mod heap;
pub mod latency;
pub mod ours;
pub mod peers;
pub mod score;
pub mod selfcheck;
pub mod storm;
pub mod subject;
pub mod timing;
pub mod work;
