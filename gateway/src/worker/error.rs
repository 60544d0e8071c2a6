//! Why there is no worker.

use thiserror::Error;
use tidegate::LimitError;

use crate::policy::read::PolicyError;

/// Why a worker cannot be made or started.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A limit out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A setting out of its range.
    #[error("{0}")]
    Setting(String),
    /// The policy's file is unreadable, or something in it is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The metrics could not be set up.
    #[error("metrics: {0}")]
    Metrics(String),
}

impl From<ConfigError> for std::io::Error {
    fn from(error: ConfigError) -> Self {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, error)
    }
}
