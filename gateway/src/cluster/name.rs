//! Names of workers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most bytes in a name.
const LONGEST: usize = 128;

/// What a worker is called: a part of a NATS subject and a key of the bucket. Up to 128
/// letters, digits, dashes and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkerName(String);

/// A text that is no worker's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("1 to 128 letters, digits, dashes and underscores, such as worker-0")]
pub struct WorkerNameError;

impl WorkerName {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name made of any text: what may not be in one becomes a dash.
    #[must_use]
    pub fn from_any(text: &str) -> Self {
        let usable = |c: char| if is_usable(c) { c } else { '-' };
        let name: String = text.chars().map(usable).take(LONGEST).collect();
        Self(if name.is_empty() { "-".into() } else { name })
    }
}

fn is_usable(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl FromStr for WorkerName {
    type Err = WorkerNameError;

    fn from_str(text: &str) -> Result<Self, WorkerNameError> {
        let usable = (1..=LONGEST).contains(&text.len()) && text.chars().all(is_usable);
        usable.then(|| Self(text.to_owned())).ok_or(WorkerNameError)
    }
}

impl TryFrom<String> for WorkerName {
    type Error = WorkerNameError;

    fn try_from(text: String) -> Result<Self, WorkerNameError> {
        text.parse()
    }
}

impl From<WorkerName> for String {
    fn from(name: WorkerName) -> Self {
        name.0
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_subject() {
        for good in ["a", "worker-0", "Pod_1", &"x".repeat(128)] {
            assert_eq!(good.parse::<WorkerName>().unwrap().as_str(), good);
        }
        for bad in ["", "a.b", "*", ">", "a b", "ä", "a\r\n", &"x".repeat(129)] {
            assert!(bad.parse::<WorkerName>().is_err(), "{bad:?}");
            assert!(
                WorkerName::from_any(bad)
                    .as_str()
                    .parse::<WorkerName>()
                    .is_ok()
            );
        }
        assert_eq!(
            WorkerName::from_any("gpu.node:8100").as_str(),
            "gpu-node-8100"
        );
    }
}
