//! Which headers cross the proxy.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, HeaderMap, HeaderName};

/// Where some clients put their key.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What this family of headers begins with. Only the proxy may speak so.
const ADMISSION: &str = "x-admission-";

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

/// Marks the headers that hold secrets, so that whoever prints them prints none.
pub(super) fn hide_secrets(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, API_KEY] {
        if let http::header::Entry::Occupied(mut found) = headers.entry(name) {
            found.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::headers;
    use super::*;

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
}
