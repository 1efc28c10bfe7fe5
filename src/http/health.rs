//! Whether the service lives, and whether it can work.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::problem::{Problem, ProblemBody};

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

/// Tells that the process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(super) fn healthz() -> Ready<Json<Health>> {
    ready(Json(Health { status: "ok" }))
}

/// Tells whether the store answers and its schema is current.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, body = Health),
    (status = 503, body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    api.service.store.health_check().await?;
    Ok(Json(Health { status: "ready" }))
}
