//! Authentication: an API key leads to a tenant and scopes. `host.rs` protects a service without
//! keys.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Api;
use super::codes::ProblemCode;
use super::host::check_anonymous;
use super::problem::Problem;
use super::tenant_limits::limit_rate;
use crate::api_key::hash_secret;
use crate::limits::RunLimits;
use crate::store::{ApiKeyRecord, Scope};
use crate::tenant::TenantId;

/// Whose data the request is about; handlers take it as an argument.
#[derive(Debug, Clone)]
pub(super) struct Caller(pub(super) TenantId);

/// Whether the caller may administer the tenant. Without keys everybody may.
#[derive(Debug, Clone, Copy)]
pub(super) struct IsAdministrator(pub(super) bool);

impl<S: Send + Sync> FromRequestParts<S> for IsAdministrator {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().copied().unwrap_or(Self(false)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::internal("the route names no scope, so nobody was identified"))
    }
}

/// What the API key of the request allows its runs; nothing is limited without a key.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyLimits(pub(super) RunLimits);

impl<S: Send + Sync> FromRequestParts<S> for KeyLimits {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Lets a request pass whose caller has the scope and does not ask too often. Both request and
/// response then know the caller.
pub(super) async fn require_scope(
    State((api, scope)): State<(Arc<Api>, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = authorize(&api, request.uri(), request.headers(), scope).await?;
    let caller = Caller(key.as_ref().map_or_else(TenantId::anonymous, |key| key.tenant.clone()));
    let is_administrator = key.as_ref().is_none_or(|key| key.scopes.contains(&Scope::Admin));
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(IsAdministrator(is_administrator));
    if let Some(key) = key {
        request.extensions_mut().insert(KeyLimits(key.limits.clone()));
    }
    let mut response = limit_rate(&api, &caller.0, next.run(request)).await;
    response.extensions_mut().insert(caller);
    Ok(response)
}

/// Returns the key that the request is made with; none where none is needed.
async fn authorize(
    api: &Api,
    target: &Uri,
    headers: &HeaderMap,
    scope: Scope,
) -> Result<Option<Arc<ApiKeyRecord>>, Problem> {
    let Some(secret) = bearer(headers)? else {
        if api.keys.is_key_needed().await? {
            return Err(missing_key());
        }
        check_anonymous(target, headers, &api.limits)?;
        return Ok(None);
    };
    let key = match hash_secret(secret) {
        Some(hash) => api.keys.key(hash).await?,
        None => None,
    };
    let key = key.ok_or_else(|| Problem::new(ProblemCode::InvalidApiKey, "the API key is unknown or was revoked"))?;
    if key.scopes.contains(&scope) || key.scopes.contains(&Scope::Admin) {
        Ok(Some(key))
    } else {
        Err(Problem::new(
            ProblemCode::MissingScope,
            format!("the API key lacks the scope {}", scope.as_str()),
        ))
    }
}

/// Returns the secret of the header `Authorization`, if there is one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Ok(None) };
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

fn missing_key() -> Problem {
    Problem::new(
        ProblemCode::MissingApiKey,
        "send the header Authorization: Bearer with an API key",
    )
}
