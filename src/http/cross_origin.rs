//! Lets web pages of the configured origins call the service from a browser (CORS, the Fetch
//! standard of WHATWG).
//!
//! Preflights are answered before anybody is identified, so they need no key. All responses of the
//! router to such a page, problems included, can be read by its scripts. Cookies are not allowed,
//! so a page never acts as the person who has logged in to the console.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use futures_util::FutureExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, Any, CorsLayer};

use super::host::is_allowed_origin;
use super::limits::HttpLimits;

/// How long a browser may remember the response to a preflight. Chromium takes no more.
const MAX_AGE: Duration = Duration::from_hours(2);

/// Makes the layer for the configured origins; `None` if there are none.
pub(super) fn cross_origin(limits: &HttpLimits) -> Option<CorsLayer> {
    if limits.allowed_origins.is_empty() {
        return None;
    }
    let limits = limits.clone();
    let is_allowed =
        move |origin: &HeaderValue, _: &Parts| origin.to_str().is_ok_and(|origin| is_allowed_origin(origin, &limits));
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_allowed))
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(Any)
        .max_age(MAX_AGE);
    Some(layer)
}

/// Answers a request by the layer: a preflight at once, any other request by its route.
pub(super) async fn allowed_across<F: Future<Output = Response>>(
    layer: &CorsLayer,
    request: Request,
    route: impl Fn(Request) -> F,
) -> Response {
    let is_preflight = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    // The layer takes every request with this method for a preflight.
    if request.method() == Method::OPTIONS && !is_preflight {
        return route(request).await;
    }
    let service = layer.layer(service_fn(|request| route(request).map(Ok::<_, Infallible>)));
    let Ok(response) = service.oneshot(request).await;
    response
}
