//! Liveness and readiness: whether the process lives, and whether it can work.

use std::future::{Ready, ready};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::ProblemCode;
use super::problem::Problem;
use super::state::Api;

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

/// Shows that the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process answers", body = Health)))]
pub(super) fn healthz() -> Ready<Json<Health>> {
    ready(Json(Health { status: "ok" }))
}

/// Returns whether a request is a probe. Probes succeed even while other requests are refused.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Returns whether the store is reachable, its schema is current, all background loops work, and no
/// shutdown has begun. The store is checked once per second.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "The service is ready", body = Health),
), extensions(("x-problems" = json!([ProblemCode::StoreUnavailable, ProblemCode::NotReady]))))]
pub(super) async fn readyz(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    if api.drain.has_begun() {
        let words = "the process is shutting down; it serves what still arrives";
        return Err(Problem::new(ProblemCode::NotReady, words));
    }
    let down = api.runs.supervisor.loops_down();
    if !down.is_empty() {
        let detail = format!(
            "a part of the service has failed and is being restarted: {}",
            down.join(", ")
        );
        return Err(Problem::new(ProblemCode::NotReady, detail));
    }
    api.readiness.check(&*api.runs.store).await?;
    Ok(Json(Health { status: "ready" }))
}
