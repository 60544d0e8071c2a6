//! Fuzz targets of the gate and the gateway, as functions of bytes.
//!
//! Each takes whatever bytes there are and panics if something is wrong. The
//! targets under `fuzz_targets` hand them libFuzzer's inputs; the replay test
//! hands them the seeds.

mod bytes;
#[path = "../../core/tests/ops/mod.rs"]
mod ops;
mod stream;

pub use bytes::gate_ops;
pub use stream::first_token;

/// Runs a target on the files named on the command line: what each target's
/// program does when it is built without libFuzzer.
pub fn replay(target: fn(&[u8])) {
    for path in std::env::args_os().skip(1) {
        let input = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.to_string_lossy()));
        target(&input);
        println!("{}: held", path.to_string_lossy());
    }
}
