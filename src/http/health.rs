//! Whether the service lives, and whether it can work.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::codes::ProblemCode;
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

/// Tells whether the store answers, its schema is current, and all loops of the process work.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, body = Health),
    (status = 503, body = ProblemBody, content_type = "application/problem+json"),
))]
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    let down = api.service.runs.supervisor().loops_down();
    if !down.is_empty() {
        let detail = format!(
            "a part of the service has failed and is being restarted: {}",
            down.join(", ")
        );
        return Err(Problem::new(ProblemCode::NotReady, detail));
    }
    api.service.store.health_check().await?;
    Ok(Json(Health { status: "ready" }))
}
