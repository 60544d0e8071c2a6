//! Which headers cross the proxy, and what is read off them.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

/// A request's identity, passed on to the engine and made if missing.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Says how far a refusal reaches: `worker` or `rank`.
pub const ADMISSION_SCOPE: HeaderName = HeaderName::from_static("x-admission-scope");

/// Says which data-parallel rank refused, when the scope is `rank`.
pub const ADMISSION_RANK: HeaderName = HeaderName::from_static("x-admission-rank");

/// What this family of headers begins with. Only the proxy may speak so.
const ADMISSION: &str = "x-admission-";

/// Headers that name the data-parallel rank a request is for.
const RANK: [&str; 2] = ["x-data-parallel-rank", "x-dynamo-dp-rank"];

/// Names a class of service, which only some clients may claim.
const CLASS: &str = "x-slo-class";

/// Where some clients put their key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Headers that concern one connection and not the message.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

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

/// Removes what concerns one connection only, `Connection`'s own list included.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes every `x-admission-*` header, so that an engine cannot refuse in the
/// proxy's name.
pub fn remove_admission(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with(ADMISSION))
        .cloned()
        .collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Removes what a client that is not trusted may not claim: a rank, a class, and
/// whatever begins with `x-admission-`.
pub fn remove_claims(headers: &mut HeaderMap) {
    for name in RANK.into_iter().chain([CLASS]) {
        headers.remove(name);
    }
    remove_admission(headers);
}

/// Marks the headers that hold secrets, so that whoever prints them prints none.
pub fn hide_secrets(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, API_KEY] {
        if let http::header::Entry::Occupied(mut found) = headers.entry(name) {
            found.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }
}

/// The request's id: the client's, or a new random one, which is then set.
pub fn request_id(headers: &mut HeaderMap) -> HeaderValue {
    headers
        .entry(REQUEST_ID)
        .or_insert_with(|| {
            let text = format!("{:032x}", rand::random::<u128>());
            HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("none"))
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

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
    fn what_concerns_the_connection_stays_behind() {
        let mut crossing = headers(&[
            ("connection", "keep-alive, X-Private"),
            ("connection", "x-second"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("te", "trailers"),
            ("x-private", "1"),
            ("x-second", "2"),
            ("authorization", "Bearer k"),
            ("content-type", "application/json"),
        ]);
        remove_hop_by_hop(&mut crossing);
        let mut left: Vec<_> = crossing.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["authorization", "content-type"]);
    }

    #[test]
    fn an_engine_cannot_speak_as_the_gate() {
        let mut answer = headers(&[
            ("x-admission-scope", "worker"),
            ("X-Admission-Anything", "1"),
            ("x-admissions", "kept"),
        ]);
        remove_admission(&mut answer);
        assert_eq!(answer, headers(&[("x-admissions", "kept")]));
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
    fn secrets_are_not_printed() {
        let mut secret = headers(&[
            ("authorization", "Bearer one"),
            ("authorization", "Bearer two"),
            ("cookie", "three"),
            ("x-api-key", "four"),
        ]);
        hide_secrets(&mut secret);
        let text = format!("{secret:?}");
        for part in ["one", "two", "three", "four"] {
            assert!(!text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_request_keeps_its_id_or_gets_one() {
        let mut with = headers(&[("x-request-id", "mine")]);
        assert_eq!(request_id(&mut with), "mine");
        let (mut one, mut other) = (HeaderMap::new(), HeaderMap::new());
        assert_eq!(request_id(&mut one).len(), 32);
        assert_ne!(request_id(&mut one), request_id(&mut other));
        assert_eq!(request_id(&mut one), one.clone()[REQUEST_ID]);
    }
}
