//! Who calls and what they may do: an API key leads to a tenant and scopes. Whether the service may listen without keys is decided elsewhere.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Api;
use super::codes::ProblemCode;
use super::problem::Problem;
use crate::api_key::hash_secret;
use crate::store::Scope;
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

/// Lets a request pass whose caller has the scope. Both request and response then know the caller.
pub(super) async fn require_scope(
    State((api, scope)): State<(Arc<Api>, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (tenant, is_administrator) = authorize(&api, request.headers(), scope).await?;
    let caller = Caller(tenant);
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(is_administrator);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(caller);
    Ok(response)
}

async fn authorize(api: &Api, headers: &HeaderMap, scope: Scope) -> Result<(TenantId, IsAdministrator), Problem> {
    let Some(secret) = bearer(headers)? else {
        return if api.keys.is_key_needed().await? {
            Err(missing_key())
        } else {
            Ok((TenantId::anonymous(), IsAdministrator(true)))
        };
    };
    let key = match hash_secret(secret) {
        Some(hash) => api.keys.key(hash).await?,
        None => None,
    };
    let key = key.ok_or_else(|| Problem::new(ProblemCode::InvalidApiKey, "the API key is unknown or was revoked"))?;
    let is_administrator = key.scopes.contains(&Scope::Admin);
    if is_administrator || key.scopes.contains(&scope) {
        Ok((key.tenant.clone(), IsAdministrator(is_administrator)))
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
