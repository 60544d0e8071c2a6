//! Which headers cross the proxy, and what is read off them.

use http::StatusCode;
use http::header::{
    AUTHORIZATION, CONNECTION, COOKIE, EXPECT, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
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
/// Asks for news while a request is queued.
const PROGRESS: &str = "x-admission-progress";

/// The longest request id that is followed, in bytes.
const MAX_ID: usize = 256;

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
fn remove_claims(headers: &mut HeaderMap) {
    for name in RANK.into_iter().chain([CLASS]) {
        headers.remove(name);
    }
    remove_admission(headers);
}

/// Marks the headers that hold secrets, so that whoever prints them prints none.
fn hide_secrets(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, API_KEY] {
        if let http::header::Entry::Occupied(mut found) = headers.entry(name) {
            found.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }
}

/// Makes the headers of a request that came in fit to be read and passed on: hides its
/// secrets, and removes what concerns its connection and, unless its client is
/// `trusted`, what that may not claim. [`unmet`] is asked before.
pub fn receive(headers: &mut HeaderMap, trusted: bool) {
    hide_secrets(headers);
    remove_hop_by_hop(headers);
    if !trusted {
        remove_claims(headers);
    }
}

/// The request's id: the client's, or a new random one, which is then set in the place
/// of any that is no id (see [`is_id`]), or of several.
pub fn request_id(headers: &mut HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(REQUEST_ID).iter();
    if let (Some(id), None) = (given.next(), given.next())
        && is_id(id)
    {
        return id.clone();
    }
    let text = format!("{:032x}", rand::random::<u128>());
    let id = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("none"));
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// Whether this may identify a request in a log: 1 to 256 bytes of printable ASCII.
#[must_use]
pub fn is_id(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    let printable = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    (1..=MAX_ID).contains(&bytes.len()) && printable
}

/// Whether `x-admission-progress: 1` asks for news while the request is queued.
#[must_use]
pub fn asks_progress(headers: &HeaderMap) -> bool {
    headers.get(PROGRESS).is_some_and(|value| value == "1")
}

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
/// [`remove_hop_by_hop`].
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
        let longest = "x".repeat(MAX_ID);
        assert_eq!(
            request_id(&mut headers(&[("x-request-id", &longest)])),
            longest
        );
    }

    #[test]
    fn what_is_no_id_or_several_is_replaced_by_one() {
        let long = "x".repeat(MAX_ID + 1);
        for given in [
            &[("x-request-id", "")][..],
            &[("x-request-id", &long)],
            &[("x-request-id", "a\tb")],
            &[("x-request-id", "\u{e9}")],
            &[("x-request-id", "one"), ("x-request-id", "two")],
            &[("x-request-id", "same"), ("x-request-id", "same")],
        ] {
            let mut headers = headers(given);
            let id = request_id(&mut headers);
            assert_eq!(id.len(), 32, "{given:?}");
            let all: Vec<_> = headers.get_all(REQUEST_ID).iter().collect();
            assert_eq!(all, [id], "{given:?}");
        }
    }

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

    #[test]
    fn progress_is_asked_for_by_a_one() {
        for (value, asked) in [("1", true), ("0", false), ("true", false), ("", false)] {
            let headers = headers(&[("x-admission-progress", value)]);
            assert_eq!(asks_progress(&headers), asked, "{value}");
        }
        assert!(!asks_progress(&HeaderMap::new()));
    }
}
