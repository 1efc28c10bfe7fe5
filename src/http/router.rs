//! Every route, and the layers around them. No other file adds a route.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any, get, post};
use tokio::sync::Mutex;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi as _;
use utoipa::openapi::{HttpMethod, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::{PathItemExt as _, routes};

use super::auth::require_scope;
use super::compression::compress;
use super::console_sessions::ConsoleSessions;
use super::console_settings::ConsoleSettings;
use super::cross_origin::{allowed_across, cross_origin};
use super::described::{complete, with_scope};
use super::docs::{self, ApiDescription};
use super::drain::Drain;
use super::frames::Frames;
use super::guards::{
    api_not_served, check_head, count_bytes, limit_time, method_not_allowed, respond_to_panic, route_not_found,
};
use super::in_flight::InFlight;
use super::key_cache::KeyCache;
use super::limits::HttpLimits;
use super::mcp_settings::McpSettings;
use super::metrics::check_reader;
use super::observe::observe;
use super::openai_settings::OpenAiSettings;
use super::pretty::{indent, wants_indented};
use super::queue_reading::QueueReading;
use super::readiness::Readiness;
use super::revocations::Revocations;
use super::state::Api;
use super::tls::Tls;
use super::{
    ag_ui, agents, ai_sdk, approvals, audit, changes, console, deliveries, guides, health, langgraph, mcp, me, metrics,
    openai, resource_metadata, runs, service, sessions, spending, threads,
};
use crate::run::RunContext;
use crate::tokens::Tokens;
use store::keys::Scope;

/// The most open connections to an address for metrics.
const METRICS_CONNECTIONS: usize = 16;

/// The routes, and the resources that they share.
#[derive(Debug, Clone)]
pub struct Interface {
    pub(super) router: Router,
    pub(super) api: Arc<Api>,
    /// The most open connections.
    pub(super) max_connections: usize,
    /// Whether its connections are those of callers.
    pub(super) is_of_callers: bool,
    /// `None` for plain HTTP.
    pub(super) tls: Option<Arc<Tls>>,
}

/// Makes the whole interface.
pub fn interface(
    runs: Arc<RunContext>,
    tokens: Option<Arc<Tokens>>,
    mcp: Option<Arc<McpSettings>>,
    openai: Arc<OpenAiSettings>,
    console: &ConsoleSettings,
    limits: &HttpLimits,
) -> Interface {
    let console = Some(console).filter(|console| console.is_served(limits.listen));
    let api = api(runs, tokens, mcp, openai, console.cloned(), limits);
    let scoped = |part: Part| {
        let state = (Arc::clone(&api), part.scope);
        let compressed = part.routes.route_layer(from_fn(compress));
        compressed.route_layer(from_fn_with_state(state, require_scope))
    };
    let counted = |part: Part| Part {
        routes: part.routes.route_layer(from_fn(count_bytes)),
        ..part
    };
    let timed = from_fn_with_state(Arc::clone(&api), limit_time);
    let routes = Router::new()
        .merge(scoped(counted(identified())))
        .merge(scoped(counted(reading())))
        .merge(scoped(streaming()))
        .merge(scoped(writing()))
        .merge(scoped(counted(administration())))
        .merge(scoped(counted(measuring())))
        .merge(scoped(counted(auditing())))
        .merge(open().routes)
        .merge(logins().routes)
        .route_layer(timed)
        .merge(scoped(running()))
        .merge(scoped(following()))
        .merge(scoped(mcp_routes()));
    let pages = documentation().merge(console_pages()).merge(well_known());
    guarded(routes.merge(pages).merge(not_served()), api)
}

/// Makes the router of a process that answers probes only.
pub fn probe_interface(runs: Arc<RunContext>, limits: &HttpLimits) -> Interface {
    guarded(
        open().routes.route("/{*path}", any(api_not_served)),
        api(runs, None, None, Arc::default(), None, limits),
    )
}

impl Interface {
    /// Reports from now on that the process is not ready. It still serves.
    pub fn begin_drain(&self) {
        self.api.drain.begin();
    }

    /// Serves over TLS. If client certificates identify callers, requests need credentials, even
    /// while no API key exists.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> Self {
        if tls.as_ref().is_some_and(|tls| tls.identifies_clients()) {
            self.api.keys.require();
        }
        Self { tls, ..self }
    }

    /// Makes the interface of an address that shows the metrics of this one, without a key.
    #[must_use]
    pub fn measuring(&self, listen: SocketAddr) -> Self {
        let check = from_fn_with_state(listen.ip().is_loopback(), check_reader);
        Self {
            max_connections: METRICS_CONNECTIONS,
            is_of_callers: false,
            ..guarded(measuring().routes.route_layer(check), Arc::clone(&self.api))
        }
    }
}

fn api(
    runs: Arc<RunContext>,
    tokens: Option<Arc<Tokens>>,
    mcp: Option<Arc<McpSettings>>,
    openai: Arc<OpenAiSettings>,
    console: Option<ConsoleSettings>,
    limits: &HttpLimits,
) -> Arc<Api> {
    let keys = KeyCache::new(Arc::clone(&runs.store));
    let console_sessions = ConsoleSessions::new(Arc::clone(&runs.store));
    let revocations = Revocations::new(Arc::clone(&runs.store));
    Arc::new(Api {
        started_at: runs.clock.now(),
        runs,
        mcp,
        openai,
        console,
        cross_origin: cross_origin(limits),
        limits: limits.clone(),
        keys,
        tokens,
        revocations,
        console_sessions,
        readiness: Readiness::default(),
        drain: Drain::default(),
        readers: Arc::default(),
        in_flight: InFlight::new(limits.max_bytes_in_flight),
        queue: QueueReading::default(),
        metrics_turn: Mutex::default(),
        frames: Frames::default(),
    })
}

/// Adds the layers that every request passes. Each layer clones everything below it for each
/// request, so there are few layers.
fn guarded(routes: Router<Arc<Api>>, api: Arc<Api>) -> Interface {
    let router = routes
        .fallback(async |request: Request| route_not_found(&request))
        .method_not_allowed_fallback(async |request: Request| method_not_allowed(&request, openapi))
        .layer((
            from_fn_with_state(Arc::clone(&api), pass),
            CatchPanicLayer::custom(respond_to_panic),
        ))
        .with_state(Arc::clone(&api));
    Interface {
        router,
        max_connections: api.limits.max_connections,
        is_of_callers: true,
        tls: None,
        api,
    }
}

/// Observes a request, checks its head, calls its route, and indents the response if requested.
async fn pass(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let is_indented = wants_indented(request.uri());
    let answer = async |request: Request| match &api.cross_origin {
        Some(layer) => allowed_across(layer, request, |request| checked(&api, request, next.clone())).await,
        None => checked(&api, request, next).await,
    };
    let response = observe(&api.runs, request, answer).await;
    if is_indented { indent(response) } else { response }
}

async fn checked(api: &Api, request: Request, next: Next) -> Response {
    match check_head(&api.limits, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Returns the description of the interface (OpenAPI 3.1).
pub fn openapi() -> OpenApi {
    let mut description = described();
    complete(&mut description);
    description
}

/// Routes with the same layers.
struct Part {
    routes: Router<Arc<Api>>,
    /// The scope that their callers need; `None` for routes without a key, or for any key.
    scope: Option<Scope>,
}

/// Makes a function with the routes of each part, and one with their description. The description
/// is large and rarely read, so serving does not build it.
macro_rules! parts {
    ($($(#[$words:meta])* $part:ident($scope:expr): $($($handler:ident)::+),+;)+) => {
        $($(#[$words])*
        fn $part() -> Part {
            let routes = Router::new();
            $(let path = routes!(@path [path()] of $($handler)::+);
            let methods = routes!(@path [methods()] of $($handler)::+);
            let routes = routes.route(&served_path(&path), answered(&methods, &$($handler)::+));)+
            Part { routes, scope: $scope }
        })+

        fn described() -> OpenApi {
            let mut description = ApiDescription::openapi();
            $(let routes = OpenApiRouter::<Arc<Api>>::new()$(.routes(routes!($($handler)::+)))+;
            description.merge(with_scope(routes.into_openapi(), $scope));)+
            description
        }
    };
}

/// Returns a path as axum writes it. The path of a file may have any number of names, and so may
/// the name of a model.
fn served_path(path: &str) -> String {
    path.replace("/{path}", "/{*path}").replace("/{model}", "/{*model}")
}

/// Routes requests of some methods to a handler.
fn answered<T: 'static>(methods: &[HttpMethod], handler: &impl Handler<T, Arc<Api>>) -> MethodRouter<Arc<Api>> {
    methods.iter().fold(MethodRouter::new(), |router, method| {
        router.on(method.to_method_filter(), handler.clone())
    })
}

parts! {
    /// Routes that take as long as a run.
    running(Some(Scope::RunsWrite)):
        runs::create::create_run,
        runs::answers::answer_run,
        ag_ui::run::run_ag_ui,
        langgraph::start::stream_langgraph_run,
        langgraph::start::stream_stateless_run,
        langgraph::start::wait_for_langgraph_run,
        langgraph::start::wait_for_stateless_run,
        langgraph::start::create_langgraph_run,
        langgraph::start::create_stateless_run,
        ai_sdk::chat::create_chat_message,
        openai::responses::create_response,
        openai::chat::create_completion;

    /// Routes that wait for runs.
    following(Some(Scope::SessionsRead)):
        runs::show::get_run,
        runs::events::follow_run,
        changes::follow_changes,
        ai_sdk::resume::resume_chat,
        langgraph::runs::join_langgraph_run,
        langgraph::runs::follow_langgraph_run,
        openai::response_by_id::get_response;

    writing(Some(Scope::RunsWrite)):
        runs::control::stop_run,
        runs::control::cancel_run,
        runs::control::steer_run,
        sessions::import::import_session,
        sessions::delete::delete_session,
        sessions::files::change::change_files,
        sessions::files::merge::merge_session,
        sessions::files::blob::put_blob,
        threads::change::create_thread,
        threads::change::put_thread,
        threads::change::patch_thread,
        threads::change::delete_thread,
        threads::files::change_thread_files,
        deliveries::redeliver,
        ai_sdk::stop::stop_chat,
        langgraph::threads::create_langgraph_thread,
        langgraph::threads::patch_langgraph_thread,
        langgraph::threads::delete_langgraph_thread,
        langgraph::cancel::cancel_langgraph_run,
        openai::response_by_id::cancel_response,
        openai::response_by_id::delete_response,
        openai::conversations::create_conversation,
        openai::conversations::update_conversation,
        openai::conversations::delete_conversation,
        openai::conversation_items::create_conversation_items,
        openai::conversation_items::delete_conversation_item;

    reading(Some(Scope::SessionsRead)):
        runs::show::list_runs,
        sessions::list::list_sessions,
        sessions::list::list_lineage,
        sessions::list::list_children,
        sessions::files::merge::get_ancestor,
        sessions::show::get_message_session,
        sessions::compare::verify_session,
        threads::show::list_threads,
        threads::show::get_thread,
        deliveries::list_deliveries,
        deliveries::get_delivery,
        agents::list_agents,
        agents::get_agent,
        service::get_service,
        spending::get_spend,
        spending::get_usage,
        langgraph::assistants::get_langgraph_info,
        langgraph::assistants::list_assistants,
        langgraph::assistants::get_assistant,
        langgraph::assistants::get_assistant_schemas,
        langgraph::threads::list_langgraph_threads,
        langgraph::runs::list_langgraph_runs,
        langgraph::runs::get_langgraph_run;

    /// Routes that count their bytes themselves while they read.
    streaming(Some(Scope::SessionsRead)):
        ai_sdk::messages::list_chat_messages,
        langgraph::threads::get_langgraph_thread,
        langgraph::states::get_thread_state,
        langgraph::states::get_checkpoint_state,
        langgraph::states::get_state_at,
        langgraph::states::list_thread_history,
        approvals::list_approvals,
        runs::show::list_steps,
        sessions::show::get_session,
        sessions::compare::diff_sessions,
        sessions::files::list::list_files,
        sessions::files::download::get_file,
        sessions::files::archive::get_archive,
        sessions::show::list_messages,
        threads::show::list_thread_messages,
        threads::files::list_thread_files,
        threads::files::get_thread_file,
        openai::response_by_id::list_input_items,
        openai::conversations::get_conversation,
        openai::conversation_items::list_conversation_items,
        openai::conversation_items::get_conversation_item,
        openai::models::list_models,
        openai::models::get_model;

    administration(Some(Scope::Admin)):
        agents::list_agent_versions,
        agents::put_agent,
        agents::delete_agent,
        agents::reload_agents;

    measuring(Some(Scope::Metrics)): metrics::get_metrics;

    auditing(Some(Scope::Audit)): audit::list_acts;

    /// Routes for every caller that has a valid key.
    identified(None): me::get_me;

    open(None): health::healthz, health::readyz;

    /// Routes of browsers, which have no key or a cookie in place of it.
    logins(None):
        console::session::show_login,
        console::session::log_in,
        console::session::log_out;
}

/// Makes the route of the Model Context Protocol. The scope depends on the message.
fn mcp_routes() -> Part {
    let routes = Router::new().route("/mcp", post(mcp::serve_mcp));
    Part {
        // Clients often write the address like this.
        routes: routes.route("/mcp/", post(mcp::serve_mcp)),
        scope: None,
    }
}

/// Makes the routes of OpenAI's API that the service does not have, and whose last names another
/// route would take for an id.
fn not_served() -> Router<Arc<Api>> {
    Router::new()
        .route(
            "/v1/responses/compact",
            any(async |request: Request| route_not_found(&request)),
        )
        .route(
            "/v1/responses/input_tokens",
            any(async |request: Request| route_not_found(&request)),
        )
}

/// Makes the routes of the documentation, which need no key.
fn documentation() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(docs::index))
        .route("/openapi.json", get(async || docs::openapi_json(openapi)))
        .route("/docs", get(docs::redirect_to_page))
        .route("/docs/", get(docs::page))
        .route("/docs/{*file}", get(docs::page))
        .route("/config/default.toml", get(guides::settings))
        .layer(map_response(docs::secure))
}

/// Makes the routes by which clients find who issues tokens. They need no key.
fn well_known() -> Router<Arc<Api>> {
    Router::new()
        .route(resource_metadata::ROOT, get(resource_metadata::show))
        .route(resource_metadata::OF_MCP, get(resource_metadata::show_mcp))
}

/// Makes the routes of the console's pages, which need no key. Each address that is no file is the
/// address of a view, and shows the page.
fn console_pages() -> Router<Arc<Api>> {
    Router::new()
        .route("/console", get(console::pages::page))
        .route("/console/", get(console::pages::page))
        .route("/console/{*file}", get(console::pages::page))
}
