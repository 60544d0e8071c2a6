//! The engine's address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use thiserror::Error;

/// Where an engine listens: `http` or `https`, an authority, and optionally a
/// path that goes before every route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl {
    pub(super) scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end; empty for none.
    prefix: String,
}

/// A text that is not an engine's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EngineUrlError {
    /// Not a URL with `http` or `https` and a host.
    #[error("must be an http:// or https:// URL with a host, such as http://127.0.0.1:8000")]
    Malformed,
    /// A name and password before the host.
    #[error("must not hold a user name or password")]
    Credentials,
    /// Something after `?`.
    #[error("must not have a query")]
    Query,
}

impl FromStr for EngineUrl {
    type Err = EngineUrlError;

    fn from_str(text: &str) -> Result<Self, EngineUrlError> {
        let uri: Uri = text.trim().parse().map_err(|_| EngineUrlError::Malformed)?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(EngineUrlError::Malformed);
        };
        if (scheme != Scheme::HTTP && scheme != Scheme::HTTPS) || authority.host().is_empty() {
            return Err(EngineUrlError::Malformed);
        }
        if authority.as_str().contains('@') {
            return Err(EngineUrlError::Credentials);
        }
        let path = parts
            .path_and_query
            .unwrap_or(PathAndQuery::from_static("/"));
        if path.query().is_some() {
            return Err(EngineUrlError::Query);
        }
        Ok(Self {
            scheme,
            authority,
            prefix: path.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

impl EngineUrl {
    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host().trim_matches(['[', ']'])
    }

    /// The port, or the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        let default = if self.scheme == Scheme::HTTPS {
            443
        } else {
            80
        };
        self.authority.port_u16().unwrap_or(default)
    }

    /// Whether a listener at `listener` on this machine is found there. A name that
    /// cannot be looked up is nobody's.
    #[must_use]
    pub fn leads_to(&self, listener: SocketAddr) -> bool {
        let port = self.port();
        // Few names have to be looked up.
        if port != listener.port() {
            return false;
        }
        let found = (self.host(), port).to_socket_addrs();
        found.is_ok_and(|mut found| found.any(|addr| reaches(addr.ip(), listener.ip())))
    }

    /// The engine's address for a route: path and query as the client wrote
    /// them. `None` if that cannot be part of a URL.
    pub(super) fn route(&self, path_and_query: &str) -> Option<Uri> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path_and_query}", self.prefix))
            .build()
            .ok()
    }
}

/// Whether a connection to `ip` comes to who listens on `listener`.
fn reaches(ip: IpAddr, listener: IpAddr) -> bool {
    // Connecting to no address in particular is connecting to this machine.
    let ip = match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    match listener {
        IpAddr::V4(all) if all.is_unspecified() => ip.is_ipv4() && is_ours(ip),
        IpAddr::V6(all) if all.is_unspecified() => is_ours(ip),
        one => ip == one.to_canonical(),
    }
}

/// Whether this machine has this address: only such a one can be bound.
fn is_ours(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_path() {
        let route = |url: &str, path: &str| {
            let url: EngineUrl = url.parse().unwrap();
            url.route(path).unwrap().to_string()
        };
        assert_eq!(
            route("http://h:8000", "/v1/x?a=b"),
            "http://h:8000/v1/x?a=b"
        );
        assert_eq!(
            route("http://h:8000/", "//v1/%2e/x"),
            "http://h:8000//v1/%2e/x"
        );
        assert_eq!(route(" https://h/base/ ", "/x"), "https://h/base/x");
        assert_eq!(route("http://[::1]:80", "/x"), "http://[::1]:80/x");
    }

    #[test]
    fn a_listener_of_this_machine_is_recognised() {
        for (url, listener, found) in [
            ("http://127.0.0.1:8100", "127.0.0.1:8100", true),
            ("http://127.0.0.1:8100/base", "0.0.0.0:8100", true),
            ("http://localhost:8100", "127.0.0.1:8100", true),
            ("http://0.0.0.0:8100", "127.0.0.1:8100", true),
            ("http://127.0.0.1:8000", "127.0.0.1:8100", false),
            ("http://127.0.0.2:8100", "127.0.0.1:8100", false),
            // An address for documentation, which no machine has.
            ("http://192.0.2.1:8100", "0.0.0.0:8100", false),
            ("http://127.0.0.1", "127.0.0.1:80", true),
            ("https://127.0.0.1", "127.0.0.1:80", false),
            ("http://no.such.name.invalid:8100", "0.0.0.0:8100", false),
        ] {
            let engine: EngineUrl = url.parse().unwrap();
            let listener = listener.parse().unwrap();
            assert_eq!(engine.leads_to(listener), found, "{url} {listener}");
        }
    }

    #[test]
    fn what_is_no_address_says_what_one_is() {
        for text in ["", "h", "h:8000", "/v1", "ftp://h", "http://", "http:///x"] {
            assert_eq!(
                text.parse::<EngineUrl>(),
                Err(EngineUrlError::Malformed),
                "{text}"
            );
        }
        assert_eq!(
            "http://a:b@h".parse::<EngineUrl>(),
            Err(EngineUrlError::Credentials)
        );
        assert_eq!(
            "http://h/?x".parse::<EngineUrl>(),
            Err(EngineUrlError::Query)
        );
    }
}
