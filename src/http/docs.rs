//! The OpenAPI document and the page to read it. Both work offline.

use std::borrow::Cow;
use std::future::{Ready, ready};
use std::sync::{Arc, LazyLock, OnceLock};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::codes::ProblemCode;
use super::described::API_KEY;
use super::guides::{self, Form};
use super::in_flight::json_response;
use super::openai_errors::ErrorBody;
use super::parameters::PathParameters;
use super::problem::{Problem, ProblemBody};
use super::state::Api;

/// The content security policy of the page of requests: it loads only its own files, and some of
/// its styles are inline. Guides have a policy of their own.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The parts of the description that belong to no route.
#[derive(OpenApi)]
#[openapi(
    info(title = "agent-runtime", description = "Runs LLM agents over immutable, forkable sessions.", license(name = "Apache-2.0 OR MIT")),
    tags(
        (name = "runs", description = "A run takes one session, works, and publishes exactly one new session or nothing."),
        (name = "sessions", description = "A session is an immutable snapshot; its parent makes sessions a tree."),
        (name = "files", description = "The files of a session; a change of them makes a new session."),
        (name = "threads", description = "A thread is a named pointer to a session, which runs move."),
        (name = "agents", description = "Definitions of agents, stored as immutable versions."),
        (name = "openai", description = "The routes for the clients of OpenAI. Errors have OpenAI's form."),
        (name = "ai_sdk", description = "The routes for AI SDK UI. Errors are texts, which pages show."),
        (name = "langgraph", description = "The routes for LangGraph's clients. Errors are texts."),
        (name = "ag_ui", description = "The route for AG-UI. Errors before the stream are texts."),
        (name = "webhooks", description = "Deliveries of the messages about ended runs."),
        (name = "service", description = "Who calls, what the service has, and what changes."),
        (name = "console", description = "The login of a browser to the console."),
        (name = "health", description = "How the service is. Needs no key."),
    ),
    external_docs(url = "/docs/guides", description = "Guides"),
    components(schemas(ProblemBody, ErrorBody)),
    modifiers(&ApiKeyScheme),
)]
pub(super) struct ApiDescription;

struct ApiKeyScheme;

impl Modify for ApiKeyScheme {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, `ark_...`; none is needed while none was ever made."));
        let components = description.components.get_or_insert_default();
        components.add_security_scheme(API_KEY, SecurityScheme::Http(scheme.build()));
    }
}

/// The addresses of the documentation.
#[derive(Debug, Serialize)]
pub(super) struct Index {
    service: &'static str,
    version: &'static str,
    docs: &'static str,
    guides: &'static str,
    openapi: &'static str,
}

/// Responds with the addresses of the documentation.
pub(super) fn index() -> Ready<Json<Index>> {
    let index = Index {
        service: "agent-runtime",
        version: env!("CARGO_PKG_VERSION"),
        docs: "/docs",
        guides: "/docs/guides",
        openapi: "/openapi.json",
    };
    ready(Json(index))
}

/// Responds with the description of the interface, which `openapi` makes.
pub(super) fn openapi_json(openapi: fn() -> utoipa::openapi::OpenApi) -> Result<Response, Problem> {
    static JSON: OnceLock<Result<String, String>> = OnceLock::new();
    let json = JSON.get_or_init(|| openapi().to_json().map_err(|error| error.to_string()));
    let json = json.as_ref().map_err(|error| Problem::internal(error.as_str()))?;
    Ok(json_response(json.as_str()))
}

/// Redirects to the page, whose files have relative addresses.
pub(super) fn redirect_to_page() -> Ready<Response> {
    // The text helps clients that follow no redirects.
    let words = "The description of the API is at /docs/, its guides are at /docs/guides.\n";
    ready((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "/docs/")], words).into_response())
}

/// Responds with a guide, with a file of the guides, or with a file of the page.
pub(super) async fn page(
    State(api): State<Arc<Api>>,
    form: Form,
    headers: HeaderMap,
    path: PathParameters,
) -> Result<Response, Problem> {
    static CONFIG: LazyLock<Arc<utoipa_swagger_ui::Config<'static>>> =
        LazyLock::new(|| Arc::new(utoipa_swagger_ui::Config::from("/openapi.json")));
    let file = path.into_text("file");
    if let Some(guide) = guides::find(&file, form, &headers) {
        return Ok(guide);
    }
    if let Some(name) = file.strip_prefix("assets/") {
        return guides::asset(&api, name, &headers).await;
    }
    match utoipa_swagger_ui::serve(&file, Arc::clone(&CONFIG)) {
        Ok(Some(file)) => Ok(page_file(file)),
        Ok(None) => Err(Problem::new(ProblemCode::RouteNotFound, "the page has no such file")),
        Err(error) => Err(Problem::internal(error.to_string())),
    }
}

fn page_file(file: utoipa_swagger_ui::SwaggerFile<'static>) -> Response {
    // Large files are static parts of the program, so slow readers need no memory of their own.
    let bytes = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    let mut response = ([(header::CONTENT_TYPE, file.content_type)], bytes).into_response();
    if file.gzpipped {
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Restricts pages to their own files and forbids frames.
pub(super) fn secure(mut response: Response) -> Ready<Response> {
    let headers = response.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(PAGE_POLICY));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    ready(response)
}
