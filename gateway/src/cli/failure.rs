//! Why a command ended badly, and with which exit code.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Exit code of something that failed.
const FAILED: u8 = 1;
/// Exit code of a command line that is not understood.
const USAGE: u8 = 2;

/// A failed command. Displays one line, then the causes that it does not name itself.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub code: u8,
    message: String,
}

impl Failure {
    /// Arguments that each parse but do not go together.
    pub fn usage(message: impl fmt::Display) -> Self {
        Failure {
            code: USAGE,
            message: message.to_string(),
        }
    }

    /// A server that did not start on this address, which `flag` chose.
    pub fn listening(address: SocketAddr, flag: &str, error: &io::Error) -> Self {
        let message = match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "{address} is in use by another process: stop that one, or choose another \
                 address with {flag} (port 0 takes a free one)"
            ),
            io::ErrorKind::AddrNotAvailable => {
                format!("{address} is no address of this machine: choose another with {flag}")
            }
            io::ErrorKind::PermissionDenied => format!(
                "{address} may not be listened on by this user: choose a port from 1024 up with {flag}"
            ),
            io::ErrorKind::InvalidInput => return Failure::usage(error),
            _ => format!("nothing was started on {address}: {error}"),
        };
        Failure {
            code: FAILED,
            message,
        }
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Many errors end in their cause's text already.
            if !message.contains(&text) {
                message += &format!("\n  because: {text}");
            }
            cause = error.source();
        }
        Failure {
            code: FAILED,
            message,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_named_with_the_way_out() {
        let address = "127.0.0.1:8100".parse().expect("an address");
        let failure = Failure::listening(address, "--listen", &io::ErrorKind::AddrInUse.into());
        let text = failure.to_string();
        assert!(
            text.contains("127.0.0.1:8100") && text.contains("--listen"),
            "{text}"
        );
        assert_eq!(failure.code, 1);
        let invalid = io::Error::new(io::ErrorKind::InvalidInput, "ranks must be 1 to 1024");
        assert_eq!(Failure::listening(address, "--listen", &invalid).code, 2);
    }

    #[test]
    fn causes_are_told_once() {
        let inner = io::Error::other("no such host");
        let failure = Failure::from(io::Error::other(inner));
        assert_eq!(failure.to_string(), "no such host");
    }
}
