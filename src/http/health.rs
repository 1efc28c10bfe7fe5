//! Liveness and readiness: whether the process lives, and whether it can work.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::codes::ProblemCode;
use super::problem::Problem;

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

/// Tells that the process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process answers", body = Health)))]
pub(super) fn healthz() -> Ready<Json<Health>> {
    ready(Json(Health { status: "ok" }))
}

/// Tells whether a request asks how the service is. Such requests are answered when others no longer are.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Tells whether the store answers and its schema is current, as seen within the last second, and all loops of the process work.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "The service is ready", body = Health),
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
    api.readiness.check(&*api.service.store).await?;
    Ok(Json(Health { status: "ready" }))
}
