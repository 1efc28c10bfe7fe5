//! `/console/session`: the login of a browser, with an API key in exchange for a cookie.
//!
//! The header `Authorization` means nothing here. With it, the other routes ignore the cookie.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::auth::{console_login, unknown_key};
use crate::http::codes::ProblemCode;
use crate::http::console_sessions::MAX_AGE;
use crate::http::cookie::{Transport, check_own_page, forget};
use crate::http::host::check_anonymous;
use crate::http::json_body::{check_media_type, decode_body, read_open_body};
use crate::http::parameters::{NoParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::CONSOLE_PROBLEMS;
use crate::http::requester::holder;
use crate::http::state::Api;
use crate::http::tenant_limits::limit_rate;
use store::audit::Requester;
use store::keys::ApiKeyRecord;
use values::clock::Timestamp;

/// The largest body of a login, in bytes.
const MAX_BODY: usize = 4 << 10;

/// An API key, in exchange for a session of the console.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct LogIn {
    /// The API key.
    #[schema(value_type = String, format = Password)]
    key: SecretString,
}

/// How requests of the console are authenticated.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ConsoleSession {
    authentication: Authentication,
    /// When the session ends unless it is used; null without a session.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    expires_at: Option<Timestamp>,
}

/// What a request of the console needs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Authentication {
    /// Nothing: there is no API key.
    None,
    /// A login.
    Required,
    /// The cookie, which the browser has.
    Active,
}

impl ConsoleSession {
    fn active(expires_at: Timestamp) -> Self {
        Self {
            authentication: Authentication::Active,
            expires_at: Some(expires_at),
        }
    }

    fn without(authentication: Authentication) -> Self {
        Self {
            authentication,
            expires_at: None,
        }
    }

    fn into_response(self) -> Response {
        ([(header::CACHE_CONTROL, "no-store")], Json(self)).into_response()
    }
}

/// Shows whether the browser needs a login.
#[utoipa::path(get, path = "/console/session", tag = "console", responses(
    (status = 200, description = "What the browser needs", body = ConsoleSession),
), extensions(("x-problems" = json!([CONSOLE_PROBLEMS, [
    ProblemCode::HostNotAllowed, ProblemCode::ProxiedWithoutKey,
]]))))]
pub(in crate::http) async fn show_login(
    State(api): State<Arc<Api>>,
    _: NoParameters,
    target: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    api.console()?;
    let session = if let Some((session, _)) = console_login(&api, &Method::GET, &headers).await? {
        ConsoleSession::active(session.expires_at)
    } else if api.is_key_needed().await? {
        ConsoleSession::without(Authentication::Required)
    } else {
        check_anonymous(&target, &headers, &api.limits)?;
        ConsoleSession::without(Authentication::None)
    };
    Ok(session.into_response())
}

/// Logs a browser in. The response sets a cookie, with which the pages of the console may do what
/// the key may. A session lasts 12 hours, and 2 hours without a request. A key has at most 100.
#[utoipa::path(post, path = "/console/session", tag = "console", request_body = LogIn, params(
    ("X-Console" = String, Header),
), responses(
    (status = 200, description = "The session", body = ConsoleSession, headers(
        ("Set-Cookie" = String, description = "The secret of the session")
    )),
), extensions(("x-problems" = json!([CONSOLE_PROBLEMS, [
    ProblemCode::InvalidApiKey, ProblemCode::RateLimited, ProblemCode::NulCharacter,
]]))))]
pub(in crate::http) async fn log_in(
    State(api): State<Arc<Api>>,
    query: QueryParameters,
    request: Request,
) -> Result<Response, Problem> {
    api.console()?;
    check_own_page(request.method(), request.headers())?;
    let transport = Transport::of_login(request.headers())?;
    let headers = request.headers().clone();
    let extensions = request.extensions().clone();
    check_media_type(&headers)?;
    let (bytes, _room) = read_open_body(request, &api, MAX_BODY).await?.into_parts();
    let LogIn { key } = decode_body(&bytes, &api.limits)?;
    query.finish()?;
    let key = api.keys.key_with_secret(key.expose_secret()).await?;
    let key = key.ok_or_else(unknown_key)?;
    let by = holder(&api, &key, &extensions);
    let beginning = async { begin(&api, &key, &by, transport, &headers).await.into_response() };
    Ok(limit_rate(&api, &key.tenant, false, beginning).await)
}

async fn begin(
    api: &Api,
    key: &ApiKeyRecord,
    by: &Requester,
    transport: Transport,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (session, secret) = api.console_sessions.begin(key, by).await?;
    let cookie = transport.set_cookie(headers, secret.expose_secret(), MAX_AGE.as_secs());
    let response = ConsoleSession::active(session.expires_at).into_response();
    Ok(([(header::SET_COOKIE, cookie)], response).into_response())
}

/// Logs the browser out. May be repeated.
#[utoipa::path(delete, path = "/console/session", tag = "console", params(
    ("X-Console" = Option<String>, Header),
), responses(
    (status = 204, description = "There is no session any more"),
), extensions(("x-problems" = json!([CONSOLE_PROBLEMS]))))]
pub(in crate::http) async fn log_out(
    State(api): State<Arc<Api>>,
    _: NoParameters,
    request: Request,
) -> Result<Response, Problem> {
    api.console()?;
    let headers = request.headers();
    if let Some((session, key)) = console_login(&api, request.method(), headers).await? {
        let by = holder(&api, &key, request.extensions());
        api.console_sessions.end(&session, &by).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    for cookie in forget(headers) {
        let cookie = HeaderValue::try_from(cookie).map_err(Problem::internal)?;
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
