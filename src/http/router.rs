//! Every route, and the layers around them. Nothing else may add a route.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::{any, get};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::require_scope;
use super::described::complete;
use super::docs::{self, ApiDescription};
use super::guards::{answer_panic, limit_head, limit_time, method_not_allowed, no_api_here, route_not_found};
use super::in_flight::{InFlight, count_bytes};
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::observe::observe;
use super::pretty::indent;
use super::readiness::Readiness;
use super::tenant_limits::limit_rate;
use super::{Api, HttpState, agents, deliveries, guides, health, runs, sessions, threads};
use crate::store::Scope;

/// The routes, and what they share.
#[derive(Debug)]
pub struct Interface {
    pub(super) router: Router,
    pub(super) api: Arc<Api>,
}

/// Makes the whole interface.
pub fn interface(state: HttpState, limits: &HttpLimits) -> Interface {
    let api = api(state, limits);
    let rated = from_fn_with_state(Arc::clone(&api), limit_rate);
    // The description of a part is dropped before the next part is made, so that little memory is taken: it is made again when it is read.
    let served = |described: OpenApiRouter<Arc<Api>>| described.split_for_parts().0;
    // Who calls is found out first, and then how often.
    let scoped = |routes: Router<Arc<Api>>, scope| {
        let known = from_fn_with_state((Arc::clone(&api), scope), require_scope);
        routes.route_layer((known, rated.clone()))
    };
    let counted = from_fn_with_state(Arc::clone(&api), count_bytes);
    let timed = from_fn_with_state(Arc::clone(&api), limit_time);
    let routes = Router::new()
        .merge(scoped(served(reading()).route_layer(counted), Scope::SessionsRead))
        .merge(scoped(served(streaming()), Scope::SessionsRead))
        .merge(scoped(served(writing()), Scope::RunsWrite))
        .merge(scoped(served(administration()), Scope::Admin))
        .merge(served(open()))
        .route_layer(timed)
        .merge(scoped(served(running()), Scope::RunsWrite))
        .merge(scoped(served(following()), Scope::SessionsRead));
    guarded(routes.merge(documentation()), api)
}

/// Makes the interface of a process that answers probes only.
pub fn probe_interface(state: HttpState, limits: &HttpLimits) -> Interface {
    let (routes, _) = open().split_for_parts();
    guarded(routes.route("/{*path}", any(no_api_here)), api(state, limits))
}

fn api(state: HttpState, limits: &HttpLimits) -> Arc<Api> {
    let keys = KeyCache::new(Arc::clone(&state.store));
    Arc::new(Api {
        service: state,
        limits: limits.clone(),
        keys,
        readiness: Readiness::default(),
        readers: Arc::default(),
        in_flight: InFlight::new(limits.max_bytes_in_flight),
        frames: runs::Frames::default(),
    })
}

/// Puts around routes what every request passes, the outermost first. Layers that are added one by one copy all below them, each for each request.
fn guarded(routes: Router<Arc<Api>>, api: Arc<Api>) -> Interface {
    let router = routes
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer((
            from_fn(indent),
            from_fn_with_state(Arc::clone(&api), observe),
            from_fn_with_state(Arc::clone(&api), limit_head),
            CatchPanicLayer::custom(answer_panic),
        ))
        .with_state(Arc::clone(&api));
    Interface { router, api }
}

/// Returns the description of the interface (OpenAPI 3.1).
pub fn openapi() -> utoipa::openapi::OpenApi {
    let routes = reading()
        .merge(streaming())
        .merge(writing())
        .merge(administration())
        .merge(open())
        .merge(running())
        .merge(following());
    let mut description = ApiDescription::openapi();
    description.merge(routes.into_openapi());
    complete(&mut description);
    description
}

/// Takes as long as a run does.
fn running() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new().routes(routes!(runs::create_run))
}

/// Waits for runs.
fn following() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(runs::get_run))
        .routes(routes!(runs::follow_run))
}

fn writing() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(runs::stop_run))
        .routes(routes!(runs::cancel_run))
        .routes(routes!(runs::steer_run))
        .routes(routes!(sessions::import_session))
        .routes(routes!(threads::put_thread, threads::delete_thread))
        .routes(routes!(deliveries::redeliver))
}

fn reading() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(runs::list_runs))
        .routes(routes!(sessions::list_sessions))
        .routes(routes!(sessions::list_lineage))
        .routes(routes!(sessions::list_children))
        .routes(routes!(sessions::verify_session))
        .routes(routes!(threads::list_threads))
        .routes(routes!(threads::get_thread))
        .routes(routes!(deliveries::list_deliveries))
        .routes(routes!(deliveries::get_delivery))
        .routes(routes!(agents::list_agents))
        .routes(routes!(agents::get_agent))
}

/// Counts its bytes itself, as it reads them.
fn streaming() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(runs::list_steps))
        .routes(routes!(sessions::get_session))
        .routes(routes!(sessions::diff_sessions))
        .routes(routes!(sessions::list_messages))
        .routes(routes!(threads::list_thread_messages))
}

fn administration() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(agents::put_agent, agents::delete_agent))
        .routes(routes!(agents::reload_agents))
        .routes(routes!(sessions::delete_session))
}

/// Needs no key.
fn open() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
}

/// Needs no key, and describes the others.
fn documentation() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(docs::index))
        .route("/openapi.json", get(docs::openapi_json))
        .route("/docs", get(docs::redirect_to_page))
        .route("/docs/", get(docs::page))
        .route("/docs/{*file}", get(docs::page))
        .route("/docs/guides", get(guides::index))
        .route("/docs/problems", get(guides::redirect_to_problems))
        .route("/docs/problems/", get(guides::redirect_to_problems))
        .route("/docs/problems/{code}", get(guides::problem_page))
        .layer(map_response(docs::secure))
}
