//! `GET /.well-known/oauth-protected-resource`: who issues tokens for the service (RFC 9728). MCP
//! clients read it after a response with the status 401.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::codes::ProblemCode;
use super::problem::Problem;
use super::state::Api;
use crate::tokens::Tokens;

/// The path of the document.
pub(super) const ROOT: &str = "/.well-known/oauth-protected-resource";
/// The path of the document about `/mcp`.
pub(super) const OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

/// What a client needs to get a token.
#[derive(Debug, Serialize)]
pub(super) struct ResourceMetadata {
    resource: String,
    authorization_servers: Vec<String>,
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// Describes the service.
pub(super) fn show(State(api): State<Arc<Api>>) -> Ready<Result<Json<ResourceMetadata>, Problem>> {
    ready(described(&api, |_, resource| resource.to_owned()))
}

/// Describes `/mcp`. Its address is the resource if an issuer makes tokens for it.
pub(super) fn show_mcp(State(api): State<Arc<Api>>) -> Ready<Result<Json<ResourceMetadata>, Problem>> {
    ready(described(&api, |tokens, resource| {
        let address = format!("{}/mcp", resource.trim_end_matches('/'));
        if tokens.accepts_audience(&address) {
            address
        } else {
            resource.to_owned()
        }
    }))
}

fn described(api: &Api, named: impl Fn(&Tokens, &str) -> String) -> Result<Json<ResourceMetadata>, Problem> {
    let tokens = api.tokens.as_deref();
    let Some((tokens, resource)) = tokens.and_then(|tokens| Some((tokens, tokens.resource()?))) else {
        let words = "`auth.resource` is not set, or `auth.issuers` has no identity provider";
        return Err(Problem::new(ProblemCode::RouteNotFound, words));
    };
    Ok(Json(ResourceMetadata {
        resource: named(tokens, resource),
        authorization_servers: tokens.issuers().map(str::to_owned).collect(),
        scopes_supported: tokens.scope_names().into_iter().map(str::to_owned).collect(),
        bearer_methods_supported: ["header"],
        resource_name: "agent-runtime",
    }))
}
