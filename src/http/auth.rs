//! Authentication: an API key, or a token of an identity provider, determines the tenant and the
//! scopes. A browser that has logged in to the console sends a cookie in place of its key. A client
//! certificate that the configuration names stands for a request without any of them. `host.rs`
//! protects a service without keys.

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
use super::host::{check_anonymous, check_origin};
use super::lookups::REFRESH_TIMEOUT;
use super::openai_errors::is_openai_path;
use super::peer::Peer;
use super::problem::Problem;
use super::state::Api;
use super::tenant_limits::limit_rate;
use super::tls_settings::CertifiedCaller;
use super::token_auth::{self, is_revoked, with_metadata, with_scope};
use crate::run::RequestOrigin;
use crate::tokens::Principal;
use agent::record::{CertificateCreator, Creator, KeyCreator};
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
    /// The address from which the request comes.
    pub(super) peer: Option<Peer>,
    caller: Caller,
    /// The session of the console, if its cookie stands for the key.
    session: Option<Arc<ConsoleSession>>,
}

/// Who calls.
#[derive(Debug, Clone, Default)]
enum Caller {
    /// Anybody, while requests need no credentials.
    #[default]
    Anonymous,
    Key(Arc<ApiKeyRecord>),
    Token(Arc<Principal>),
    /// The owner of a client certificate.
    Certificate(CertifiedCaller),
}

impl Caller {
    fn tenant(&self) -> TenantId {
        match self {
            Self::Anonymous => TenantId::anonymous(),
            Self::Key(key) => key.tenant.clone(),
            Self::Token(principal) => principal.tenant.clone(),
            Self::Certificate(certified) => certified.client().tenant.clone(),
        }
    }

    /// Returns the scopes of the credentials; `None` allows everything.
    fn scopes(&self) -> Option<&[Scope]> {
        match self {
            Self::Anonymous => None,
            Self::Key(key) => Some(&key.scopes),
            Self::Token(principal) => Some(&principal.scopes),
            Self::Certificate(certified) => Some(&certified.client().scopes),
        }
    }
}

impl Call {
    /// Returns whether the service still accepts the key or the token, and the session of the
    /// console. They count as valid while the store can't be read, so that an outage ends no
    /// stream, but not while others send too many unknown keys to look one up: a valid key is not
    /// unknown.
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
        Ok(match &self.caller {
            Caller::Key(key) => api.keys.key(key.secret_hash).await?.is_some(),
            Caller::Token(principal) => {
                principal.accepted_until > api.runs.clock.now() && !is_revoked(api, principal).await?
            }
            // The connection has checked the certificate, and the configuration stays.
            Caller::Certificate(_) => true,
            Caller::Anonymous => !api.is_key_needed().await?,
        })
    }

    /// Returns whether the caller may administer the tenant. Every caller may while no key exists.
    pub(super) fn is_administrator(&self) -> bool {
        self.caller.scopes().is_none_or(|scopes| scopes.contains(&Scope::Admin))
    }

    /// Refuses the request if its credentials lack the scope.
    pub(super) fn check_scope(&self, scope: Scope) -> Result<(), Problem> {
        if self.caller.scopes().is_none_or(|scopes| scope.is_granted(scopes)) {
            return Ok(());
        }
        let credentials = match &self.caller {
            Caller::Token(_) => "token",
            Caller::Certificate(_) => "client certificate",
            Caller::Key(_) | Caller::Anonymous => "API key",
        };
        let words = format!("the {credentials} lacks the scope {}", scope.as_str());
        let problem = Problem::new(ProblemCode::MissingScope, words);
        Err(if matches!(self.caller, Caller::Token(_)) {
            with_scope(&self.api, problem, scope)
        } else {
            problem
        })
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

    /// Returns whether requests such as this one need credentials.
    pub(super) fn needs_credentials(&self) -> bool {
        !matches!(self.caller, Caller::Anonymous)
    }

    /// Returns the name in the client certificate, if that identifies the caller.
    pub(super) fn certified_name(&self) -> Option<&str> {
        match &self.caller {
            Caller::Certificate(certified) => Some(certified.name()),
            Caller::Anonymous | Caller::Key(_) | Caller::Token(_) => None,
        }
    }

    /// Returns the API key; `None` if the caller has none.
    pub(super) fn key(&self) -> Option<&ApiKeyRecord> {
        match &self.caller {
            Caller::Key(key) => Some(key),
            Caller::Anonymous | Caller::Token(_) | Caller::Certificate(_) => None,
        }
    }

    /// Returns the id of the API key; `None` if the caller has none.
    pub(super) fn key_id(&self) -> Option<ApiKeyId> {
        self.key().map(|key| key.key_id)
    }

    /// Returns the caller whom a token names.
    pub(super) fn principal(&self) -> Option<&Principal> {
        match &self.caller {
            Caller::Token(principal) => Some(principal),
            Caller::Anonymous | Caller::Key(_) | Caller::Certificate(_) => None,
        }
    }

    /// Returns what a run records of its caller; `None` while requests need no credentials.
    pub(super) fn creator(&self) -> Option<Creator> {
        match &self.caller {
            Caller::Anonymous => None,
            Caller::Key(key) => Some(Creator::Key(KeyCreator { key_id: key.key_id })),
            Caller::Token(principal) => Some(token_auth::creator(principal)),
            Caller::Certificate(certified) => Some(Creator::Certificate(CertificateCreator {
                certificate: certified.name().to_owned(),
            })),
        }
    }

    /// Returns the limits that the API key or the token sets for its runs. Other credentials set
    /// none.
    pub(super) fn run_limits(&self) -> RunLimits {
        match &self.caller {
            Caller::Anonymous | Caller::Certificate(_) => RunLimits::default(),
            Caller::Key(key) => key.limits.clone(),
            Caller::Token(principal) => principal.limits.clone(),
        }
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
/// the request and the response. Without a scope, any key or token will do.
pub(super) async fn require_scope(
    State((api, scope)): State<(Arc<Api>, Option<Scope>)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let certified = request.extensions_mut().remove::<CertifiedCaller>();
    let authorized = authorize(&api, request.method(), request.uri(), request.headers(), certified).await;
    let Credentials { caller, session } = authorized.map_err(|problem| with_metadata(&api, problem))?;
    let call = Call {
        api,
        tenant: caller.tenant(),
        origin: request.extensions().get::<RequestOrigin>().cloned(),
        peer: request.extensions().get::<Peer>().copied(),
        caller,
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

/// The credentials of a request: an API key, a token, a session of the console with its key, a
/// client certificate, or none while none are needed.
#[derive(Debug, Default)]
struct Credentials {
    caller: Caller,
    session: Option<Arc<ConsoleSession>>,
}

/// Returns the credentials of the request. A client certificate counts if there are no others. The
/// clients of OpenAI always send a key, so an unknown one is accepted there while no key is needed.
async fn authorize(
    api: &Api,
    method: &Method,
    target: &Uri,
    headers: &HeaderMap,
    certified: Option<CertifiedCaller>,
) -> Result<Credentials, Problem> {
    let given = given_secret(headers);
    let secret = given.as_ref().ok().copied().flatten();
    if let Some(secret) = secret
        && let Some(key) = api.keys.key_with_secret(secret).await?
    {
        return Ok(Credentials {
            caller: Caller::Key(key),
            session: None,
        });
    }
    if let Some(secret) = secret
        && let Some(principal) = token_auth::principal(api, secret).await?
    {
        return Ok(Credentials {
            caller: Caller::Token(principal),
            session: None,
        });
    }
    let may_log_in = matches!(given, Ok(None)) && takes_cookie(target.path());
    if may_log_in && let Some((session, key)) = console_login(api, method, headers).await? {
        api.console_sessions.extend(&session, api.runs.clock.now()).await;
        return Ok(Credentials {
            caller: Caller::Key(key),
            session: Some(session),
        });
    }
    if let Some(certified) = certified
        && matches!(given, Ok(None))
    {
        // A browser sends its certificate with the requests of any page.
        check_origin(headers, &api.limits)?;
        return Ok(Credentials {
            caller: Caller::Certificate(certified),
            session: None,
        });
    }
    let may_be_anonymous = is_openai_path(target.path()) || matches!(given, Ok(None));
    if may_be_anonymous && !api.is_key_needed().await? {
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
