//! The worker's own routes. They never pass through the gate.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde_json::json;

use super::answer::{Answer, error, json_body, own};
use super::routes::OwnRoute;
use super::shared::Shared;

/// How long an engine may take to say that it is well.
const HEALTH_TIME: Duration = Duration::from_secs(2);

/// Prometheus' text format.
const METRICS_KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a route of the worker's own says.
pub(super) async fn answer(shared: &Shared, route: OwnRoute) -> Answer {
    match route {
        OwnRoute::Metrics => metrics(shared),
        OwnRoute::Health => health(),
        OwnRoute::Ready => ready(shared).await,
    }
}

/// What the listener for operations says, which knows nothing else.
pub(super) async fn only(shared: Arc<Shared>, request: Request<Incoming>) -> Answer {
    match OwnRoute::of(request.method(), request.uri()) {
        Some(route) => answer(&shared, route).await,
        None => {
            let message = "only GET /metrics, /health, /ready and /tidegate/ are here";
            error(StatusCode::NOT_FOUND, message)
        }
    }
}

/// Everything measured, as it is now.
fn metrics(shared: &Shared) -> Answer {
    let cluster = shared.cluster.as_ref();
    let cluster = cluster.map(|cluster| cluster.counts.as_ref());
    let page = shared.metrics.render(shared.policy.as_deref(), cluster);
    own(StatusCode::OK, METRICS_KIND, page)
}

/// This process is alive, whatever the engine does.
fn health() -> Answer {
    json_body(StatusCode::OK, &json!({ "status": "live" }))
}

/// Traffic is welcome: the engine answers its own `/health` (with anything but
/// a server error, since not every engine has one), and no shutdown has begun.
async fn ready(shared: &Shared) -> Answer {
    if shared.is_draining() {
        return not_ready("shutting down");
    }
    match shared.engine.probe("/health", HEALTH_TIME).await {
        Ok(status) if !status.is_server_error() => {
            json_body(StatusCode::OK, &json!({ "status": "ready" }))
        }
        Ok(status) => not_ready(&format!("the engine's /health says {}", status.as_u16())),
        Err(why) => not_ready(&why.to_string()),
    }
}

fn not_ready(why: &str) -> Answer {
    let body = json!({ "status": "not ready", "reason": why });
    json_body(StatusCode::SERVICE_UNAVAILABLE, &body)
}
