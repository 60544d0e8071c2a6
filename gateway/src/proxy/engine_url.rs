//! The engine's address.

use std::fmt;
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
