//! What is wrong with a file, and where.

use std::ops::Range;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct FileError {
    /// The line, from 1; `None` if it is of the whole file.
    pub line: Option<usize>,
    /// The key, if the line has one.
    pub key: Option<String>,
    /// What is wrong, and what is accepted.
    pub message: String,
}

impl FileError {
    pub(super) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        // The library's messages may have lines of their own.
        let message = error.message().replace('\n', ", ");
        FileError::at(text, error.span(), message)
    }

    pub(super) fn at(text: &str, span: Option<Range<usize>>, message: String) -> Self {
        let Some(before) = span.and_then(|span| text.get(..span.start)) else {
            return FileError {
                line: None,
                key: None,
                message,
            };
        };
        let line = 1 + before.matches('\n').count();
        FileError {
            line: Some(line),
            key: key(before, text),
            message,
        }
    }

    fn place(&self) -> String {
        match (&self.line, &self.key) {
            (Some(line), Some(key)) => format!("line {line}, {key}: "),
            (Some(line), None) => format!("line {line}: "),
            (None, _) => String::new(),
        }
    }
}

/// The key whose value, or which itself, starts where `before` ends.
fn key(before: &str, text: &str) -> Option<String> {
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest_of_line = text[line_start..].lines().next().unwrap_or("");
    let at = before.len() - line_start;
    // A value's key is before the last `=`; a key is before the next.
    let (until, _) = match rest_of_line.get(..at)?.rsplit_once('=') {
        Some(split) => split,
        None => rest_of_line.split_once('=')?,
    };
    // In an inline table others come before it.
    let own = until.rsplit(['{', ',', '=']).next()?;
    let key = own.trim();
    (!key.is_empty() && !key.starts_with(['#', '['])).then(|| key.to_owned())
}
