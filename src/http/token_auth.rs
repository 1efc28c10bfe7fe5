//! Authentication by a token of an identity provider, and what a refused request needs instead
//! (RFC 6750, RFC 9728).

use std::sync::Arc;
use std::time::Duration;

use super::codes::ProblemCode;
use super::problem::Problem;
use super::resource_metadata::ROOT;
use super::state::Api;
use crate::api_key::PREFIX;
use crate::tokens::{Principal, TokenFault, Tokens};
use agent::record::{Creator, TokenCreator};
use store::keys::Scope;

/// When a caller may retry while the keys of an issuer can't be read.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Returns the caller whom a token names; `None` if the secret is no token, or if the service
/// accepts none.
pub(super) async fn principal(api: &Api, secret: &str) -> Result<Option<Arc<Principal>>, Problem> {
    let Some(tokens) = api.tokens.as_deref() else {
        return Ok(None);
    };
    if secret.starts_with(PREFIX) || !secret.contains('.') {
        return Ok(None);
    }
    let principal = tokens.verify(secret, &*api.runs.clock).await;
    let principal = principal.map_err(|fault| refused(&fault, tokens))?;
    if is_revoked(api, &principal).await? {
        return Err(refused(&TokenFault::Revoked, tokens));
    }
    Ok(Some(principal))
}

/// Returns whether the tokens of a caller were revoked after its token was issued.
pub(super) async fn is_revoked(api: &Api, principal: &Principal) -> Result<bool, Problem> {
    let revocations = &api.revocations;
    let found = revocations.contains(&principal.issuer, &principal.subject, principal.issued_at);
    Ok(found.await?)
}

/// Returns what a run records of a caller.
pub(super) fn creator(principal: &Principal) -> Creator {
    Creator::Token(TokenCreator {
        issuer: principal.issuer.to_string(),
        sub: principal.subject.clone(),
        azp: principal.client.clone(),
        act: principal.actor.clone(),
    })
}

fn refused(fault: &TokenFault, tokens: &Tokens) -> Problem {
    if *fault == TokenFault::KeysUnavailable {
        let problem = Problem::new(ProblemCode::TokenKeysUnavailable, fault.to_string());
        return problem.with_retry_after(RETRY_AFTER);
    }
    let challenge = challenge(tokens, r#", error="invalid_token""#);
    Problem::new(ProblemCode::InvalidToken, fault.to_string()).with_challenge(challenge)
}

/// Adds where a client without credentials finds who issues tokens.
pub(super) fn with_metadata(api: &Api, problem: Problem) -> Problem {
    let is_unnamed = matches!(problem.code(), ProblemCode::MissingApiKey | ProblemCode::InvalidApiKey);
    match api.tokens.as_deref().filter(|_| is_unnamed) {
        Some(tokens) => problem.with_challenge(challenge(tokens, "")),
        None => problem,
    }
}

/// Adds the scope that a token lacks.
pub(super) fn with_scope(api: &Api, problem: Problem, scope: Scope) -> Problem {
    let Some(tokens) = api.tokens.as_deref() else {
        return problem;
    };
    let names = tokens.names_of(scope).join(" ");
    let error = format!(r#", error="insufficient_scope", scope="{names}""#);
    problem.with_challenge(challenge(tokens, &error))
}

fn challenge(tokens: &Tokens, error: &str) -> String {
    let metadata = tokens.resource().map(|resource| {
        let origin = resource.trim_end_matches('/');
        format!(r#", resource_metadata="{origin}{ROOT}""#)
    });
    format!(r#"Bearer realm="agent-runtime"{error}{}"#, metadata.unwrap_or_default())
}
