//! Ports that are wanted, and free ones where those are taken.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use crate::cli::failure::Failure;

/// A default address that somebody else has, and the one used instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The default.
    pub wanted: SocketAddr,
    /// The one in use now.
    pub taken: SocketAddr,
}

/// A port of the loopback interface; 0 stands for a free one.
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Starts a server at `wanted`, or on a free port if somebody has that one.
///
/// # Errors
/// What `start` fails with, a port in use apart.
pub async fn start_on<S>(
    wanted: SocketAddr,
    start: impl AsyncFn(SocketAddr) -> io::Result<S>,
) -> Result<S, Failure> {
    let (address, outcome) = match start(wanted).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            (loopback(0), start(loopback(0)).await)
        }
        outcome => (wanted, outcome),
    };
    outcome.map_err(|error| Failure::listening(address, "--listen", &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(address).await
    }

    #[tokio::test]
    async fn a_taken_port_gives_way_to_a_free_one() {
        let other = bind(loopback(0)).await.expect("a free port");
        let wanted = other.local_addr().expect("bound");
        let server = start_on(wanted, bind).await.expect("another port");
        assert_ne!(server.local_addr().expect("bound"), wanted);
    }

    #[tokio::test]
    async fn other_errors_are_not_hidden() {
        let broken = async |_| Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied));
        let failure = start_on(loopback(80), broken).await.expect_err("an error");
        assert!(
            failure.to_string().starts_with("127.0.0.1:80 "),
            "{failure}"
        );
    }
}
