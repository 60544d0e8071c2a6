//! What a client claims by its headers: a rank, a class, a key, and news of its queueing.

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use thiserror::Error;

use super::crossing::{API_KEY, remove_admission};

/// Headers that name the data-parallel rank a request is for.
const RANK: [&str; 2] = ["x-data-parallel-rank", "x-dynamo-dp-rank"];

/// Names a class of service, which only some clients may claim.
const CLASS: &str = "x-slo-class";

/// Asks for news while a request is queued.
const PROGRESS: &str = "x-admission-progress";

/// A rank header that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RankError {
    /// Not a decimal number from 0 to 4294967295.
    #[error("header {0} must be a rank id: a decimal number from 0 to 4294967295")]
    Malformed(&'static str),
    /// Two headers, two values, or a header and the body, that name different ranks.
    #[error("the request names two ranks, {0} and {1}")]
    Conflict(u32, u32),
}

/// The rank that `X-data-parallel-rank` or `x-dynamo-dp-rank` asks for, `None`
/// without either. Saying the same twice is fine.
///
/// # Errors
///
/// When a value is malformed, or when two differ.
pub fn rank(headers: &HeaderMap) -> Result<Option<u32>, RankError> {
    let mut rank = None;
    for name in RANK {
        for value in headers.get_all(name) {
            let said = parse_rank(value).ok_or(RankError::Malformed(name))?;
            rank = same_rank(rank, Some(said))?;
        }
    }
    Ok(rank)
}

/// The one rank that two places name.
///
/// # Errors
///
/// When they name two.
pub fn same_rank(one: Option<u32>, other: Option<u32>) -> Result<Option<u32>, RankError> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(RankError::Conflict(one, other)),
        _ => Ok(one.or(other)),
    }
}

fn parse_rank(value: &HeaderValue) -> Option<u32> {
    let text = value.to_str().ok()?.trim();
    // `parse` alone would take a leading plus.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// The class of service that the request claims.
#[must_use]
pub fn class(headers: &HeaderMap) -> Option<&str> {
    headers.get(CLASS)?.to_str().ok().map(str::trim)
}

/// The key that the client shows: a bearer token, or `x-api-key`. Keep it out of
/// every log.
#[must_use]
pub fn api_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    bearer.or_else(|| headers.get(API_KEY)?.to_str().ok().map(str::trim))
}

/// Whether `x-admission-progress: 1` asks for news while the request is queued.
#[must_use]
pub fn asks_progress(headers: &HeaderMap) -> bool {
    headers.get(PROGRESS).is_some_and(|value| value == "1")
}

/// Removes what a client that is not trusted may not claim: a rank, a class, and
/// whatever begins with `x-admission-`.
pub(super) fn remove_claims(headers: &mut HeaderMap) {
    for name in RANK.into_iter().chain([CLASS]) {
        headers.remove(name);
    }
    remove_admission(headers);
}

#[cfg(test)]
mod tests {
    use super::super::testing::headers;
    use super::*;

    #[test]
    fn a_rank_is_read_from_either_header() {
        let read = |pairs: &[(&str, &str)]| rank(&headers(pairs));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("X-data-parallel-rank", "3")]), Ok(Some(3)));
        assert_eq!(
            read(&[("x-dynamo-dp-rank", " 4294967295 ")]),
            Ok(Some(u32::MAX))
        );
        let both = [("x-dynamo-dp-rank", "3"), ("x-data-parallel-rank", "03")];
        assert_eq!(read(&both), Ok(Some(3)));
    }

    #[test]
    fn a_rank_that_cannot_be_followed_is_an_error() {
        for bad in [
            "",
            " ",
            "-1",
            "+3",
            "4294967296",
            "1e2",
            "3, 3",
            "0x1",
            "one",
            "3.0",
        ] {
            let read = rank(&headers(&[("x-data-parallel-rank", bad)]));
            assert_eq!(
                read,
                Err(RankError::Malformed("x-data-parallel-rank")),
                "{bad:?}"
            );
        }
        let two = [("x-dynamo-dp-rank", "3"), ("x-data-parallel-rank", "4")];
        assert_eq!(rank(&headers(&two)), Err(RankError::Conflict(4, 3)));
        let twice = [("x-dynamo-dp-rank", "3"), ("x-dynamo-dp-rank", "4")];
        assert_eq!(rank(&headers(&twice)), Err(RankError::Conflict(3, 4)));
    }

    #[test]
    fn claims_are_a_rank_a_class_and_what_only_the_gate_may_say() {
        let mut asked = headers(&[
            ("X-Data-Parallel-Rank", "3"),
            ("x-dynamo-dp-rank", "3"),
            ("x-slo-class", "gold"),
            ("x-admission-progress", "7"),
            ("x-request-id", "mine"),
        ]);
        remove_claims(&mut asked);
        assert_eq!(asked, headers(&[("x-request-id", "mine")]));
    }

    #[test]
    fn progress_is_asked_for_by_a_one() {
        for (value, asked) in [("1", true), ("0", false), ("true", false), ("", false)] {
            let headers = headers(&[("x-admission-progress", value)]);
            assert_eq!(asks_progress(&headers), asked, "{value}");
        }
        assert!(!asks_progress(&HeaderMap::new()));
    }
}
