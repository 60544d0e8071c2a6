//! What a message demands and nobody here does.

use http::StatusCode;
use http::header::{EXPECT, HeaderMap, HeaderName, TRANSFER_ENCODING};
use thiserror::Error;

/// What a message demands and this proxy does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unmet {
    /// An `Expect` other than `100-continue`.
    #[error("the only expectation that is met is 100-continue")]
    Expectation,
    /// A transfer coding beside `chunked`.
    #[error("the only transfer coding that is understood is chunked")]
    Coding,
}

impl Unmet {
    /// The status that tells a client.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::Coding => StatusCode::NOT_IMPLEMENTED,
        }
    }
}

/// What a message with these headers demands in vain, if anything. To be asked before
/// [`receive`](super::receive).
#[must_use]
pub fn unmet(headers: &HeaderMap) -> Option<Unmet> {
    let only = |name: HeaderName, known: &str| {
        let values = headers.get_all(name).iter();
        let mut items = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        items.all(|item| item.trim_ascii().eq_ignore_ascii_case(known.as_bytes()))
    };
    if !only(TRANSFER_ENCODING, "chunked") {
        Some(Unmet::Coding)
    } else if !only(EXPECT, "100-continue") {
        Some(Unmet::Expectation)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::headers;
    use super::*;

    #[test]
    fn demands_that_nobody_meets_are_seen() {
        for (name, value, found) in [
            ("expect", "100-Continue", None),
            ("expect", "100-continue, 100-continue", None),
            ("expect", "", Some(Unmet::Expectation)),
            ("expect", "200-ok", Some(Unmet::Expectation)),
            ("expect", "100-continue, more", Some(Unmet::Expectation)),
            ("transfer-encoding", "Chunked", None),
            ("transfer-encoding", "gzip, chunked", Some(Unmet::Coding)),
            ("transfer-encoding", "gzip,chunked", Some(Unmet::Coding)),
            ("transfer-encoding", "identity", Some(Unmet::Coding)),
        ] {
            assert_eq!(unmet(&headers(&[(name, value)])), found, "{name}: {value}");
        }
        let two = [
            ("transfer-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
        ];
        assert_eq!(unmet(&headers(&two)), Some(Unmet::Coding));
        assert_eq!(unmet(&HeaderMap::new()), None);
    }
}
