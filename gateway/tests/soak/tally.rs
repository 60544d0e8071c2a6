//! What the clients saw.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Visits by the status that was seen; 0 for none.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<u16, u64>>);

impl Tally {
    pub fn ended(&self, status: Option<u16>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(status.unwrap_or(0)).or_default() += 1;
    }

    /// The worker could not be reached.
    pub fn lost(&self) {
        panic!("the worker does not take connections");
    }

    pub fn refused(&self) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&529).copied().unwrap_or(0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: u64 = counts.values().sum();
        writeln!(f, "  requests {all}")?;
        for (status, count) in counts.iter() {
            match status {
                0 => writeln!(f, "  left before an answer  {count}")?,
                status => writeln!(f, "  answered {status}  {count}")?,
            }
        }
        Ok(())
    }
}
