//! Comparing a session with another one, and with its own hashes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::found;
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::{Problem, ProblemBody};
use crate::ids::SessionId;
use crate::session::{BundleDiff, diff_bundles};
use crate::store::VerifyReport;

/// How a session, the left one, differs from another.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct SessionDiff {
    /// The session in the path.
    left_session_id: SessionId,
    /// The other one.
    right_session_id: SessionId,
    /// The differences.
    #[serde(flatten)]
    diff: BundleDiff,
}

/// What the verification of a session found.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Verification {
    /// The session.
    session_id: SessionId,
    /// Whether everything is as its hash says.
    valid: bool,
    /// What was checked and found.
    #[serde(flatten)]
    report: VerifyReport,
}

/// Compares two sessions: messages, context and environment.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/diff/{other}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("other" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "Where the sessions differ", body = SessionDiff),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn diff_sessions(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<SessionDiff>, Problem> {
    query.finish()?;
    let (left_id, right_id) = (path.id("session_id")?, path.id("other")?);
    let left = found(
        &api,
        &tenant,
        left_id,
        api.service.sessions.whole_bundle(&tenant, left_id).await?,
    )
    .await?;
    let right = found(
        &api,
        &tenant,
        right_id,
        api.service.sessions.whole_bundle(&tenant, right_id).await?,
    )
    .await?;
    let diff = diff_bundles(&left, &right).map_err(Problem::internal)?;
    Ok(Json(SessionDiff {
        left_session_id: left_id,
        right_session_id: right_id,
        diff,
    }))
}

/// Computes all hashes of a session and its ancestors again.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/verify", tag = "sessions", params(("session_id" = uuid::Uuid, Path)), responses(
    (status = 200, description = "What was checked and found", body = Verification),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn verify_session(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Verification>, Problem> {
    query.finish()?;
    let session_id = path.id("session_id")?;
    let report = api.service.store.session_verify(&tenant, session_id).await?;
    let report = found(&api, &tenant, session_id, report).await?;
    Ok(Json(Verification {
        session_id,
        valid: report.faults.is_empty(),
        report,
    }))
}
