//! What a command was asked for, on standard output.

use std::io::{self, Write};

/// Writes to standard output. A reader that has gone, as in `tidegate config | head`, is no error.
///
/// # Errors
/// What writing says otherwise.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
