//! Which headers cross the proxy, and what is read off them.
//!
//! A part imports only from parts above it.
//!
//! | part | what it holds |
//! | --- | --- |
//! | `crossing` | which headers cross |
//! | `claims` | what a client claims |
//! | `id` | a request's id |
//! | `unmet` | what a message demands in vain |

mod claims;
mod crossing;
mod id;
mod unmet;

use http::header::{HeaderMap, HeaderName};

pub use claims::{RankError, api_key, asks_progress, class, rank, same_rank};
pub use crossing::{remove_admission, remove_hop_by_hop};
pub use id::{REQUEST_ID, is_id, request_id};
pub use unmet::{Unmet, unmet};

/// Says how far a refusal reaches: `worker` or `rank`.
pub const ADMISSION_SCOPE: HeaderName = HeaderName::from_static("x-admission-scope");

/// Says which data-parallel rank refused, when the scope is `rank`.
pub const ADMISSION_RANK: HeaderName = HeaderName::from_static("x-admission-rank");

/// Makes the headers of a request that came in fit to be read and passed on: hides its
/// secrets, and removes what concerns its connection and, unless its client is
/// `trusted`, what that may not claim. [`unmet`] is asked before.
pub fn receive(headers: &mut HeaderMap, trusted: bool) {
    crossing::hide_secrets(headers);
    remove_hop_by_hop(headers);
    if !trusted {
        claims::remove_claims(headers);
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// Headers of these names and values.
    pub(super) fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }
}
