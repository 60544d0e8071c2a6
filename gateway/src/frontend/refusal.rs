//! A worker's refusal, which is known by its `x-admission-scope` and not by its status.

use http::HeaderMap;
use http::header::RETRY_AFTER;
use serde_json::Value;

use super::hops::Ended;
use super::mark::Scope;
use crate::proxy::headers::{ADMISSION_RANK, ADMISSION_SCOPE};

/// The longest wait that is believed, in seconds.
const LONGEST_WAIT: u64 = 600;

/// What a worker said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) scope: Scope,
    /// When to come back, in seconds.
    pub(super) retry_after: Option<u64>,
    /// Its reasons, for the client.
    pub(super) details: Option<Value>,
}

impl Refusal {
    /// Whether an answer with these headers is one.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let scope = match headers.get(ADMISSION_SCOPE)?.as_bytes() {
            b"worker" => Scope::Worker,
            b"rank" => Scope::Rank(number(headers.get(ADMISSION_RANK))),
            _ => Scope::Class,
        };
        let wait: Option<u64> = number(headers.get(RETRY_AFTER));
        Some(Self {
            scope,
            retry_after: wait.map(|seconds| seconds.min(LONGEST_WAIT)),
            details: None,
        })
    }

    /// The same with what its body says.
    pub(super) fn with(mut self, body: &[u8]) -> Self {
        let body: Option<Value> = serde_json::from_slice(body).ok();
        self.details = body.and_then(|mut body| body.get_mut("details").map(Value::take));
        self
    }

    /// How a try that met it is counted.
    pub(super) fn ended(&self) -> Ended {
        match self.scope {
            Scope::Worker => Ended::RefusedWorker,
            Scope::Rank(_) => Ended::RefusedRank,
            Scope::Class => Ended::RefusedClass,
        }
    }
}

fn number<T: std::str::FromStr>(value: Option<&http::HeaderValue>) -> Option<T> {
    value?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Option<Refusal> {
        let headers = pairs
            .iter()
            .map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        Refusal::of(&headers)
    }

    #[test]
    fn the_scope_says_that_it_is_one_and_how_far_it_reaches() {
        assert_eq!(of(&[("retry-after", "7")]), None);
        let scope = |value| of(&[("x-admission-scope", value)]).unwrap().scope;
        assert_eq!(scope("worker"), Scope::Worker);
        assert_eq!(scope("rank"), Scope::Rank(None));
        assert_eq!(scope("class"), Scope::Class);
        assert_eq!(scope("galaxy"), Scope::Class);
        let ranked = [("x-admission-scope", "rank"), ("x-admission-rank", "4")];
        assert_eq!(of(&ranked).unwrap().scope, Scope::Rank(Some(4)));
    }

    #[test]
    fn waits_and_details_are_believed_within_reason() {
        let wait = |value| {
            let headers = [("x-admission-scope", "worker"), ("retry-after", value)];
            of(&headers).unwrap().retry_after
        };
        assert_eq!(wait("7"), Some(7));
        assert_eq!(wait("99999999"), Some(600));
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), None);
        let refusal = of(&[("x-admission-scope", "worker")]).unwrap();
        let details = |body: &str| refusal.clone().with(body.as_bytes()).details;
        assert_eq!(details(r#"{"details":{"a":1}}"#).unwrap()["a"], 1);
        for body in ["", "{", "[]", "7", "{}"] {
            assert_eq!(details(body), None, "{body}");
        }
    }
}
