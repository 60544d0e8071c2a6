//! `policy.toml`.
//!
//! [`DEFAULT`] is a whole file with every key, its default and what it means; an
//! empty file means the same. A key that is not known, a value of another kind or
//! out of range, and a class that does not exist are errors that name line, key
//! and what is accepted.
//!
//! ```
//! use tidegate_policy::file;
//!
//! let settings = file::parse(file::DEFAULT)?;
//! assert_eq!(settings.classes.all().len(), 3);
//!
//! let error = file::parse("utilisation_target = 1.5").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "line 1, utilisation_target: invalid value: floating point `1.5`, \
//!      expected a number above 0 and at most 1"
//! );
//! # Ok::<(), file::FileError>(())
//! ```

mod classes;
mod error;
mod format;
mod values;

pub use error::FileError;

use crate::settings::Settings;

/// A file with every key at its default, commented.
pub const DEFAULT: &str = include_str!("default.toml");

/// Reads a file.
///
/// # Errors
/// The first thing that is wrong with it, and where.
pub fn parse(text: &str) -> Result<Settings, FileError> {
    let file: format::File =
        toml::from_str(text).map_err(|error| FileError::of_toml(text, &error))?;
    file.settings(text)
}

#[cfg(test)]
mod tests;
