//! Other ways to build the same gate, one a file.

pub mod mutex_gate;

pub use mutex_gate::MutexGate;
