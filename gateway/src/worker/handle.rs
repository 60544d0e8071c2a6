//! A request's whole way: its route, the gate, the engine, and back.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use tracing::debug;

use super::answer::{Answer, error, shut_down};
use super::enter::{Asked, Entered, enter};
use super::forward::forward;
use super::routes::Route;
use super::shared::Shared;
use super::{own, progress};
use crate::proxy::headers;
use crate::proxy::request_body::RequestBody;
use crate::proxy::unread::Unread;
use crate::server::named::Named;

/// Answers one request. Dropping the future, which is what happens when the
/// client leaves, cancels the request wherever it is. `trusted` is whether the
/// client's claims are believed.
pub(super) async fn handle(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    trusted: bool,
) -> Answer {
    let crossing = request.headers_mut();
    let unmet = headers::unmet(crossing);
    headers::receive(crossing, trusted);
    let named = Named::of(crossing);
    let route = shared.routes.of(request.method(), request.uri());
    debug!(
        id = named.id(),
        traceparent = named.traceparent(),
        method = %request.method(),
        path = request.uri().path(),
        ?route,
        "asked"
    );
    let answering = async {
        if let Some(unmet) = unmet {
            if let Some(unread) = request.extensions().get::<Unread>() {
                unread.mark();
            }
            return error(unmet.status(), &unmet.to_string());
        }
        match route {
            Route::Own(route) => own::answer(&shared, route).await,
            Route::Gated => pass(&shared, request, &named, Some(trusted)).await,
            Route::Open => pass(&shared, request, &named, None).await,
        }
    };
    let mut answer = tokio::select! {
        // What the gate says of its being stopped comes first.
        biased;
        answer = answering => answer,
        () = shared.cut.cancelled() => shut_down(),
    };
    debug!(
        id = named.id(),
        status = answer.status().as_u16(),
        "answered"
    );
    named.put_on(&mut answer);
    answer
}

/// Sends a request on, through the gate if `gated`, which then is whether its
/// client is trusted.
async fn pass(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    named: &Named,
    gated: Option<bool>,
) -> Answer {
    let (head, body) = request.into_parts();
    let unread = head.extensions.get().cloned();
    let body = RequestBody::new(body, shared.client_timeout).leaving(unread);
    let Some(trusted) = gated else {
        return Box::pin(forward(shared, head, body, None, named)).await;
    };
    let asked = Asked {
        headers: &head.headers,
        path: head.uri.path(),
        trusted,
        progress: headers::asks_progress(&head.headers),
    };
    match enter(shared, asked, body, named).await {
        // Apart, so that those who wait do not hold what they need later.
        Ok(Entered::In(slot, body)) => {
            Box::pin(forward(shared, head, body, Some(slot), named)).await
        }
        Ok(Entered::Waits(waiting, body)) => progress::answer(shared, head, waiting, body, named),
        Err(answer) => answer,
    }
}
