//! How a policy file is read.

use std::path::Path;

use thiserror::Error;
use tidegate_policy::file::{self, FileError};
use tidegate_policy::settings::Settings;

/// Why a policy file could not be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file could not be read.
    #[error("the policy file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{path}: {source}")]
    Wrong {
        /// The file.
        path: String,
        /// What, and where.
        source: FileError,
    },
}

/// Reads a policy file.
///
/// # Errors
/// It is unreadable, or something in it is wrong.
pub fn read(path: &Path) -> Result<Settings, PolicyError> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| PolicyError::Unreadable {
        path: name(),
        source,
    })?;
    file::parse(&text).map_err(|source| PolicyError::Wrong {
        path: name(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file() {
        let error = read(Path::new("/nonexistent/policy.toml")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/policy.toml"));
        let source = file::parse("\nx = 1").unwrap_err();
        let path = "p.toml".to_owned();
        let error = PolicyError::Wrong { path, source }.to_string();
        assert!(
            error.starts_with("p.toml: line 2, x: unknown field"),
            "{error}"
        );
    }
}
