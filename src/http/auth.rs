//! Authentication: an API key determines the tenant and the scopes. A browser that has logged in to
//! the console sends a cookie in place of its key. `host.rs` protects a service without keys.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::timeout;

use super::codes::ProblemCode;
use super::cookie::{check_own_page, session_hash};
use super::face_errors::is_of_page;
use super::headers::single;
use super::host::check_anonymous;
use super::lookups::REFRESH_TIMEOUT;
use super::openai_errors::is_openai_path;
use super::problem::Problem;
use super::state::Api;
use super::tenant_limits::limit_rate;
use crate::run::RequestOrigin;
use store::console_sessions::ConsoleSession;
use store::keys::{ApiKeyRecord, Scope};
use values::ids::ApiKeyId;
use values::limits::RunLimits;
use values::tenant::TenantId;

/// The header with a key of clients that do not send `Authorization`.
const API_KEY: &str = "x-api-key";

/// A request whose caller is known; handlers take it as an argument.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) api: Arc<Api>,
    pub(super) tenant: TenantId,
    /// The request, for the runs that it starts.
    pub(super) origin: Option<RequestOrigin>,
    /// The API key; `None` while no key exists.
    key: Option<Arc<ApiKeyRecord>>,
    /// The session of the console, if its cookie stands for the key.
    session: Option<Arc<ConsoleSession>>,
}

impl Call {
    /// Returns whether the service still accepts the key, and the session of the console. They
    /// count as valid while the store can't be read, so that an outage ends no stream, but not
    /// while others send too many unknown keys to look one up: a valid key is not unknown.
    pub(super) async fn is_valid(&self) -> bool {
        // A look-up that is given up changes nothing.
        let checked = timeout(REFRESH_TIMEOUT, self.check_valid()).await;
        checked
            .unwrap_or(Ok(true))
            .unwrap_or_else(|problem| problem.code() != ProblemCode::TooManyUnknownKeys)
    }

    async fn check_valid(&self) -> Result<bool, Problem> {
        let api = &self.api;
        if let Some(session) = &self.session {
            let found = api.console_sessions.find(session.secret_hash, api.runs.clock.now());
            if found.await?.is_none() {
                return Ok(false);
            }
        }
        Ok(match &self.key {
            Some(key) => api.keys.key(key.secret_hash).await?.is_some(),
            None => !api.keys.is_key_needed().await?,
        })
    }

    /// Returns whether the caller may administer the tenant. Every caller may while no key exists.
    pub(super) fn is_administrator(&self) -> bool {
        self.key.as_ref().is_none_or(|key| key.scopes.contains(&Scope::Admin))
    }

    /// Refuses the request if its API key lacks the scope.
    pub(super) fn check_scope(&self, scope: Scope) -> Result<(), Problem> {
        let allowed = |key: &Arc<ApiKeyRecord>| scope.is_granted(&key.scopes);
        if self.key.as_ref().is_none_or(allowed) {
            Ok(())
        } else {
            let words = format!("the API key lacks the scope {}", scope.as_str());
            Err(Problem::new(ProblemCode::MissingScope, words))
        }
    }

    /// Returns whether the key may read sessions and runs. A response to a write shows only the
    /// written data.
    pub(super) fn may_read(&self) -> bool {
        self.check_scope(Scope::SessionsRead).is_ok()
    }

    /// Returns the problem of a write, without contents that the key may not read.
    pub(super) fn problem(&self, problem: impl Into<Problem>) -> Problem {
        let problem = problem.into();
        if self.may_read() {
            problem
        } else {
            problem.without_contents()
        }
    }

    /// Returns all scopes that the caller has. Every caller has all of them while no key exists.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Scope> {
        let scopes = Scope::ALL.into_iter();
        scopes.filter(|scope| self.check_scope(*scope).is_ok())
    }

    /// Returns the API key; `None` while no key exists.
    pub(super) fn key(&self) -> Option<&ApiKeyRecord> {
        self.key.as_deref()
    }

    /// Returns the id of the API key; `None` while no key exists.
    pub(super) fn key_id(&self) -> Option<ApiKeyId> {
        self.key.as_ref().map(|key| key.key_id)
    }

    /// Returns the limits that the API key sets for its runs. Without a key there are none.
    pub(super) fn run_limits(&self) -> RunLimits {
        self.key.as_ref().map(|key| key.limits.clone()).unwrap_or_default()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let call = parts.extensions.get::<Self>().cloned();
        call.ok_or_else(|| Problem::internal("the route names no scope, so nobody was identified"))
    }
}

/// Passes a request on if the caller has the scope and stays within the rate. Adds the caller to
/// the request and the response. Without a scope, any key will do.
pub(super) async fn require_scope(
    State((api, scope)): State<(Arc<Api>, Option<Scope>)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Credentials { key, session } = authorize(&api, request.method(), request.uri(), request.headers()).await?;
    let tenant = key.as_ref().map_or_else(TenantId::anonymous, |key| key.tenant.clone());
    let call = Call {
        api,
        tenant,
        origin: request.extensions().get::<RequestOrigin>().cloned(),
        key,
        session,
    };
    if let Some(scope) = scope {
        call.check_scope(scope)?;
    }
    request.extensions_mut().insert(call.clone());
    let is_openai = is_openai_path(request.uri().path());
    let mut response = limit_rate(&call.api, &call.tenant, is_openai, next.run(request)).await;
    response.extensions_mut().insert(call);
    Ok(response)
}

/// The credentials of a request: an API key, none while no key is needed, or a session of the
/// console with its key.
#[derive(Debug, Default)]
struct Credentials {
    key: Option<Arc<ApiKeyRecord>>,
    session: Option<Arc<ConsoleSession>>,
}

/// Returns the credentials of the request. The clients of OpenAI always send a key, so an unknown
/// one is accepted there while no key is needed.
async fn authorize(api: &Api, method: &Method, target: &Uri, headers: &HeaderMap) -> Result<Credentials, Problem> {
    let given = given_secret(headers);
    let secret = given.as_ref().ok().copied().flatten();
    if let Some(secret) = secret
        && let Some(key) = api.keys.key_with_secret(secret).await?
    {
        return Ok(Credentials {
            key: Some(key),
            session: None,
        });
    }
    let may_log_in = matches!(given, Ok(None)) && takes_cookie(target.path());
    if may_log_in && let Some((session, key)) = console_login(api, method, headers).await? {
        api.console_sessions.extend(&session, api.runs.clock.now()).await;
        return Ok(Credentials {
            key: Some(key),
            session: Some(session),
        });
    }
    let may_be_anonymous = is_openai_path(target.path()) || matches!(given, Ok(None));
    if may_be_anonymous && !api.keys.is_key_needed().await? {
        check_anonymous(target, headers, &api.limits)?;
        return Ok(Credentials::default());
    }
    Err(match given {
        Ok(None) => missing_key(may_log_in && session_hash(headers).is_some()),
        Ok(Some(_)) => unknown_key(),
        Err(problem) => problem,
    })
}

/// Returns whether a route takes the cookie of the console: those of the API do, except the routes
/// for other clients.
fn takes_cookie(path: &str) -> bool {
    path.starts_with("/v1/") && !is_openai_path(path) && !is_of_page(path)
}

/// Returns the session that the cookie names, and its API key; `None` if one of them has ended.
/// Refuses a request that no page of the console sends.
pub(super) async fn console_login(
    api: &Api,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<(Arc<ConsoleSession>, Arc<ApiKeyRecord>)>, Problem> {
    let Some(hash) = session_hash(headers).filter(|_| api.console.is_some()) else {
        return Ok(None);
    };
    let Some(session) = api.console_sessions.find(hash, api.runs.clock.now()).await? else {
        return Ok(None);
    };
    let Some(key) = api.keys.key(session.key_hash).await? else {
        return Ok(None);
    };
    check_own_page(method, headers)?;
    Ok(Some((session, key)))
}

/// Returns the secret of the header `Authorization` or, without one, of `X-Api-Key`. An empty
/// `X-Api-Key` is none, as clients send it that have no key.
fn given_secret(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else {
        let is_empty = headers.get(API_KEY).is_none_or(HeaderValue::is_empty);
        return if is_empty { Ok(None) } else { single(headers, API_KEY) };
    };
    let credentials = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|_| given.next().is_none());
    match credentials {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(secret.trim())),
        _ => Err(Problem::new(
            ProblemCode::InvalidApiKey,
            "the header Authorization must read `Bearer ark_...`",
        )),
    }
}

/// Makes the problem of an API key that is unknown or was revoked.
pub(super) fn unknown_key() -> Problem {
    Problem::new(ProblemCode::InvalidApiKey, "the API key is unknown or was revoked")
}

fn missing_key(has_cookie: bool) -> Problem {
    let words = if has_cookie {
        "the session of the console has ended: log in again"
    } else {
        "send the header Authorization: Bearer with an API key"
    };
    Problem::new(ProblemCode::MissingApiKey, words)
}
