//! The frontend's own routes.
//!
//! | route | answer |
//! | --- | --- |
//! | `GET /v1/models`, `/v1/models/{model}` | what the workers list, together |
//! | `GET /health` | this process is alive |
//! | `GET /ready` | some worker answers |
//! | `GET /metrics` | everything measured |
//! | `/busy_threshold` | the monitor's, unless it is taken away |

use std::collections::BTreeMap;

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::answer::{Answer, no_model, unusable};
use super::metrics::PREFIX;
use super::models::Served;
use super::shared::Shared;
use crate::monitor::admin;
use crate::proxy::request_body::RequestBody;
use crate::server::answer::{error, json_body, own};
use crate::server::discard::discard;
use crate::server::path::split_first;

/// Prometheus' text format.
const METRICS_KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A route of the frontend's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Models,
    Model(String),
    Health,
    Ready,
    Metrics,
    BusyThreshold,
}

impl Own {
    /// The route that a path stands for.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let parts = split_first(uri.path());
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["v1", "models"] => Some(Self::Models),
            // Names may have slashes of their own.
            ["v1", "models", name @ ..] => Some(Self::Model(name.join("/"))),
            ["health"] => Some(Self::Health),
            ["ready"] => Some(Self::Ready),
            ["metrics"] => Some(Self::Metrics),
            ["busy_threshold"] => Some(Self::BusyThreshold),
            _ => None,
        }
    }

    /// Whether it is for those who operate the frontend.
    pub(super) fn is_operational(&self) -> bool {
        !matches!(self, Self::Models | Self::Model(_))
    }
}

/// What a route of the frontend's own says.
pub(super) async fn answer(shared: &Shared, route: Own, request: Request<Incoming>) -> Answer {
    if route == Own::BusyThreshold {
        return busy_threshold(shared, request).await;
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return not_allowed("GET, HEAD");
    }
    match route {
        Own::Models => {
            let models: Vec<Value> = models(shared).into_values().collect();
            json_body(StatusCode::OK, &json!({ "object": "list", "data": models }))
        }
        Own::Model(name) => match models(shared).remove(&name) {
            Some(model) => json_body(StatusCode::OK, &model),
            None => no_model(&name),
        },
        Own::Health => json_body(StatusCode::OK, &json!({ "status": "live" })),
        Own::Ready => ready(shared),
        Own::Metrics | Own::BusyThreshold => metrics(shared),
    }
}

/// What the listener for operations says, which knows nothing else.
pub(super) async fn only(shared: &Shared, request: Request<Incoming>) -> Answer {
    match Own::of(request.uri()).filter(|route| is_there(shared, route)) {
        Some(route) if route.is_operational() => answer(shared, route, request).await,
        _ => {
            let message = "only /metrics, /health, /ready, /busy_threshold and /tidegate/ are here";
            error(StatusCode::NOT_FOUND, message)
        }
    }
}

/// Whether the route was not taken away.
pub(super) fn is_there(shared: &Shared, route: &Own) -> bool {
    *route != Own::BusyThreshold || shared.monitor.settings().admin_api
}

/// A path that is there, and a method that is not.
pub(super) fn not_allowed(allow: &'static str) -> Answer {
    let message = format!("this path answers {allow} only");
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, &message);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

/// What the workers list, as the first that lists it says.
fn models(shared: &Shared) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for member in shared.members.all().iter() {
        if let Served::Listed(models) = member.served() {
            for (name, said) in models.iter() {
                all.entry(name.clone()).or_insert_with(|| said.clone());
            }
        }
    }
    all
}

fn ready(shared: &Shared) -> Answer {
    let members = shared.members.all();
    let well = members.iter().filter(|member| member.is_well()).count();
    let counts = json!({ "workers": members.len(), "healthy": well });
    let said = |status: &str, reason: Option<&str>| {
        let mut body = counts.clone();
        body["status"] = status.into();
        if let Some(reason) = reason {
            body["reason"] = reason.into();
        }
        body
    };
    let reason = if shared.is_draining() {
        "shutting down"
    } else if members.is_empty() {
        "there is no worker"
    } else if well == 0 {
        "no worker answers"
    } else {
        return json_body(StatusCode::OK, &said("ready", None));
    };
    let body = said("not ready", Some(reason));
    json_body(StatusCode::SERVICE_UNAVAILABLE, &body)
}

fn metrics(shared: &Shared) -> Answer {
    own(StatusCode::OK, METRICS_KIND, page(shared))
}

/// Everything measured, as it is now.
pub(super) fn page(shared: &Shared) -> String {
    let members = shared.members.all();
    if let Some(policy) = &shared.policy {
        // Each model's series are there from the start, at 0.
        let models = shared.monitor.models();
        models.iter().for_each(|model| drop(policy.of(model)));
        policy.publish(shared.metrics.recorder(), PREFIX);
    }
    let cluster = shared.cluster.as_deref();
    let workers = members.iter().map(AsRef::as_ref);
    let page = shared.metrics.render(workers, cluster);
    page + &shared.monitor.render()
}

async fn busy_threshold(shared: &Shared, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let mut body = RequestBody::new(body, shared.client_timeout);
    let mut read = Vec::new();
    while read.len() <= admin::MAX_BODY {
        match body.frame().await {
            Some(Ok(frame)) => read.extend(frame.into_data().unwrap_or_default()),
            Some(Err(why)) => return unusable(why),
            None => break,
        }
    }
    discard(body);
    let kind = head.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let said = admin::answer(&shared.monitor, &head.method, kind, &read);
    let mut answer = json_body(said.status, &said.body);
    if said.status == StatusCode::METHOD_NOT_ALLOWED {
        answer
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static(admin::ALLOW));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_may_have_slashes() {
        let of = |path: &str| Own::of(&path.parse().unwrap());
        assert_eq!(of("/v1/models/"), Some(Own::Models));
        assert_eq!(of("/v1/models/a/b"), Some(Own::Model("a/b".to_owned())));
        assert_eq!(of("/v1/models/a%2Fb"), Some(Own::Model("a/b".to_owned())));
        assert_eq!(of("//metrics?x"), Some(Own::Metrics));
        assert_eq!(of("/v1/metrics"), None);
        assert_eq!(of("/"), None);
    }
}
