//! Which requests are gated, whatever way their paths are spelled (see `path`).

use std::str::FromStr;

use http::{Method, Uri};
use thiserror::Error;

use crate::server::path::{normalise, split_first};

/// The generating routes of the engines in use. A part in braces stands for any
/// one part of a path.
pub(crate) const GATED: [&str; 11] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/messages",
    "/generate",
    "/generate_stream",
    "/completion",
    "/v2/models/{name}/infer",
    "/v2/models/{name}/versions/{version}/infer",
];

/// Routes that must answer while the engine is full.
const NEVER_GATED: [&str; 6] = [
    "/metrics",
    "/health",
    "/ready",
    "/live",
    "/v1/models",
    "/models",
];

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the worker itself.
    Own(OwnRoute),
    /// To the engine, if the gate lets it.
    Gated,
    /// To the engine.
    Open,
}

/// A route of the worker's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRoute {
    /// `/metrics`: the gate's own.
    Metrics,
    /// `/health`: this process is alive.
    Health,
    /// `/ready`: the engine's health answers.
    Ready,
}

impl OwnRoute {
    /// The worker's own route that this asks for; only `GET` and `HEAD` reach one.
    #[must_use]
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        if method != Method::GET && method != Method::HEAD {
            return None;
        }
        match normalise(uri.path()).as_slice() {
            [only] if only == "metrics" => Some(Self::Metrics),
            [only] if only == "health" => Some(Self::Health),
            [only] if only == "ready" => Some(Self::Ready),
            _ => None,
        }
    }
}

/// A route to gate beside the known ones, as `--gate-route` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRoute(Vec<String>);

/// A route that cannot be gated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateRouteError {
    /// Not an absolute path.
    #[error(
        "must be a path that begins with a slash, its parts plain or a name in braces, such as /v1/audio/speech or /x/{{name}}/y"
    )]
    Malformed,
    /// A route that has to answer while the engine is full.
    #[error("{0} is never gated: it has to answer while the engine is full")]
    Never(String),
}

impl FromStr for GateRoute {
    type Err = GateRouteError;

    fn from_str(text: &str) -> Result<Self, GateRouteError> {
        let text = text.trim();
        let parts = normalise(text);
        let understood = parts.iter().all(|part| is_plain(part) || is_any(part));
        if !text.starts_with('/') || text.contains(['?', '#']) || parts.is_empty() || !understood {
            return Err(GateRouteError::Malformed);
        }
        match NEVER_GATED
            .into_iter()
            .find(|never| normalise(never) == parts)
        {
            Some(never) => Err(GateRouteError::Never(never.to_owned())),
            None => Ok(Self(parts)),
        }
    }
}

/// Decides where requests go.
#[derive(Clone, Debug)]
pub struct Routes {
    gated: Vec<Vec<String>>,
    /// The worker's own routes are among them, and not on a port of their own.
    own: bool,
}

impl Routes {
    /// The known generating routes and `extra` ones.
    pub fn new(extra: impl IntoIterator<Item = GateRoute>) -> Self {
        let known = GATED.into_iter().map(normalise);
        Self {
            gated: known
                .chain(extra.into_iter().map(|route| route.0))
                .collect(),
            own: true,
        }
    }

    /// Leaves the worker's own routes to the engine: they have a port of their own.
    #[must_use]
    pub fn without_own(mut self) -> Self {
        self.own = false;
        self
    }

    /// Where a request goes. Only `POST` is gated.
    #[must_use]
    pub fn of(&self, method: &Method, uri: &Uri) -> Route {
        if method == Method::POST {
            let path = uri.path();
            let gated = self.gates(&normalise(path)) || self.gates(&split_first(path));
            return if gated { Route::Gated } else { Route::Open };
        }
        match OwnRoute::of(method, uri) {
            Some(route) if self.own => Route::Own(route),
            _ => Route::Open,
        }
    }

    fn gates(&self, parts: &[String]) -> bool {
        self.gated.iter().any(|pattern| matches(pattern, parts))
    }
}

fn matches(pattern: &[String], parts: &[String]) -> bool {
    pattern.len() == parts.len()
        && pattern
            .iter()
            .zip(parts)
            .all(|(expected, part)| expected == part || is_any(expected))
}

fn is_any(part: &str) -> bool {
    let name = part
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.is_empty() && is_plain(name))
}

fn is_plain(part: &str) -> bool {
    !part.contains(['{', '}'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn post(path: &str) -> Route {
        Routes::new([]).of(&Method::POST, &path.parse().unwrap())
    }

    #[test]
    fn generating_routes_are_gated_however_they_are_written() {
        for path in GATED {
            assert_eq!(
                post(path.replace(['{', '}'], "").as_str()),
                Route::Gated,
                "{path}"
            );
        }
        for path in [
            "/v1/chat/completions/",
            "//v1/./chat/completions",
            "/v1/chat//completions?x=1",
            "/v1/x/../chat/completions",
            "/../v1/chat/completions",
            "/%76%31/chat/completions",
            "/v1/chat%2Fcompletions",
            "/v1/chat%2fcompletions%2F",
            "/v1/%2e/chat/%2e%2e/chat/completions",
            "http://host/v1/chat/completions",
            "/v2/models/any%20thing/infer",
            "/v2/models/a%2Fb/infer",
            "/v2/models/a%2fb%2F/versions/%2F/infer",
            "/v2/models/..%2Fb/%69nfer",
            "/v2/models/x%2F../b/infer",
        ] {
            assert_eq!(post(path), Route::Gated, "{path}");
        }
    }

    #[test]
    fn others_are_not() {
        for path in [
            "/",
            "/v1",
            "/v1/models",
            "/v1/chat",
            "/v1/chat/completions/x",
            "/v1/Chat/completions",
            "/v2/models/infer",
            "/v2/models/a/b/infer",
            "/v1/chat%252Fcompletions",
            "/%",
            "/%4",
            "/%zz",
            "/metrics",
            "/health",
        ] {
            assert_eq!(post(path), Route::Open, "{path}");
        }
        let uri: Uri = "/v1/completions".parse().unwrap();
        assert_eq!(Routes::new([]).of(&Method::GET, &uri), Route::Open);
        assert_eq!(Routes::new([]).of(&Method::OPTIONS, &uri), Route::Open);
        assert_eq!(
            Routes::new([]).of(&Method::OPTIONS, &"*".parse().unwrap()),
            Route::Open
        );
    }

    #[test]
    fn own_routes_answer_reads() {
        let get = |path: &str| Routes::new([]).of(&Method::GET, &path.parse().unwrap());
        assert_eq!(get("/metrics"), Route::Own(OwnRoute::Metrics));
        assert_eq!(get("/health/"), Route::Own(OwnRoute::Health));
        assert_eq!(get("//ready?x"), Route::Own(OwnRoute::Ready));
        assert_eq!(get("/v1/metrics"), Route::Open);
        let apart = Routes::new([]).without_own();
        for path in ["/metrics", "/health", "/ready"] {
            assert_eq!(apart.of(&Method::GET, &path.parse().unwrap()), Route::Open);
        }
    }

    #[test]
    fn extra_routes_are_gated_unless_they_must_answer() {
        let extra: GateRoute = "/v1//audio/{kind}/".parse().unwrap();
        let routes = Routes::new([extra]);
        let uri: Uri = "/v1/audio/speech".parse().unwrap();
        assert_eq!(routes.of(&Method::POST, &uri), Route::Gated);
        for never in ["/metrics", "/health/", "/v1/%6dodels"] {
            let refused = never.parse::<GateRoute>();
            assert!(matches!(refused, Err(GateRouteError::Never(_))), "{never}");
        }
        for bad in [
            "",
            "/",
            "v1/x",
            "/x?y",
            "http://h/x",
            "/{a}/{",
            "/{a}/}",
            "/{}",
            "/{{a}}",
            "/x{a}",
        ] {
            assert_eq!(
                bad.parse::<GateRoute>(),
                Err(GateRouteError::Malformed),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_spelling_of_a_gated_path_is_gated(
            path in proptest::sample::select(GATED.to_vec()),
            encode in proptest::collection::vec(any::<bool>(), 64),
            slashes in proptest::collection::vec(1_usize..3, 64),
        ) {
            let mut spelled = String::new();
            for (index, byte) in path.replace(['{', '}'], "").bytes().enumerate() {
                match byte {
                    b'/' => spelled.push_str(&"/".repeat(slashes[index])),
                    _ if encode[index] => spelled.push_str(&format!("%{byte:02X}")),
                    _ => spelled.push(byte as char),
                }
            }
            prop_assert_eq!(post(&spelled), Route::Gated, "{}", spelled);
        }

        #[test]
        fn no_path_breaks_it(path in "/[ -~]{0,40}") {
            let _ = (normalise(&path), split_first(&path));
        }
    }
}
