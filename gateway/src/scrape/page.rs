//! A page of a server, fetched.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use http::{StatusCode, Uri};
use thiserror::Error;

use crate::proxy::engine::{Engine, EngineError, EngineUrl};

/// Where a page is: an `http` or `https` URL, its path and query included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageUrl {
    server: EngineUrl,
    path: String,
}

/// A text that is no page's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an http:// or https:// URL with a host, such as http://127.0.0.1:8100/metrics")]
pub struct PageUrlError;

impl FromStr for PageUrl {
    type Err = PageUrlError;

    fn from_str(text: &str) -> Result<Self, PageUrlError> {
        let uri: Uri = text.trim().parse().map_err(|_| PageUrlError)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(PageUrlError);
        };
        let server = format!("{scheme}://{authority}").parse();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            server: server.map_err(|_| PageUrlError)?,
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.server, self.path)
    }
}

impl PageUrl {
    /// The page at `path`, which begins with a slash, of a server.
    #[must_use]
    pub fn of(server: EngineUrl, path: &str) -> Self {
        let path = path.to_owned();
        Self { server, path }
    }

    /// A page below this one.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        Self {
            server: self.server.clone(),
            path: format!("{}{path}", self.path.trim_end_matches('/')),
        }
    }
}

/// Why a page was not read.
#[derive(Debug, Error)]
pub enum PageError {
    /// Nobody answers there.
    #[error("{0}: no connection")]
    Connect(String, #[source] EngineError),
    /// The answer took too long.
    #[error("{0}: no answer within {1:?}")]
    Timeout(String, Duration),
    /// An answer that is not the page.
    #[error("{0}: status {1}")]
    Status(String, StatusCode),
    /// Anything else.
    #[error("{0}: no usable answer")]
    Answer(String, #[source] EngineError),
}

/// One page, fetched again and again on a kept connection.
#[derive(Clone, Debug)]
pub struct Fetch {
    url: PageUrl,
    server: Engine,
}

impl Fetch {
    /// Prepares; connects to nobody yet.
    ///
    /// # Errors
    /// For `https`, when the system's trusted certificates cannot be read.
    pub fn new(url: PageUrl) -> io::Result<Self> {
        let server = Engine::new(url.server.clone())?;
        Ok(Self { url, server })
    }

    /// The page as it is now. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// No answer within `time`, another status than 200, or a page over 4 MiB.
    pub async fn text(&self, time: Duration) -> Result<String, PageError> {
        let url = || self.url.to_string();
        let asked = self.server.page(&self.url.path, "*/*", time).await;
        let (status, bytes) = asked.map_err(|error| match error {
            EngineError::Connect(_) => PageError::Connect(url(), error),
            EngineError::Timeout(time) => PageError::Timeout(url(), time),
            _ => PageError::Answer(url(), error),
        })?;
        if status != StatusCode::OK {
            return Err(PageError::Status(url(), status));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_path_and_query() {
        for url in ["http://h:1/metrics", "https://h/a?b=c", "http://[::1]:1/"] {
            assert_eq!(url.parse::<PageUrl>().unwrap().to_string(), url);
        }
        let base: PageUrl = "http://h/prom/".parse().unwrap();
        assert_eq!(base.below("/api?x").to_string(), "http://h/prom/api?x");
        for bad in [
            "",
            "h",
            "h:1/metrics",
            "ftp://h/x",
            "http://",
            "http://a:b@h/",
        ] {
            assert_eq!(bad.parse::<PageUrl>(), Err(PageUrlError), "{bad}");
        }
    }
}
