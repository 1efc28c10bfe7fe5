//! `GET /v1/sessions/{session_id}/ancestor/{other}` and `POST /v1/sessions/{session_id}/merge`.

use axum::Json;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::child::respond_child;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::KeyedBody;
use crate::http::parameters::{NoParameters, PathParameters, QueryParameters, parse_id};
use crate::http::problem::Problem;
use crate::http::problem_groups::{CHILD_PROBLEMS, SESSION_PROBLEMS};
use crate::http::sessions::view::SessionView;
use crate::run::files::{MergeRequest, common_ancestor, merge_files};
use store::retention::Ancestor;
use store::sessions::ConflictPolicy;

/// A session to merge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct MergeSession {
    /// The session whose changes since the common ancestor are taken over.
    #[schema(format = Uuid)]
    with: String,
    /// The policy if another session continues the session already; by default `fork`.
    conflict: Option<ConflictPolicy>,
}

/// Shows the nearest common ancestor of two sessions. A removed one has its ids only.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/ancestor/{other}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("other" = uuid::Uuid, Path),
), responses(
    (status = 200, description = "The session from which both descend", body = Ancestor),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::NoCommonAncestor]]))))]
pub(in crate::http) async fn get_ancestor(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<Ancestor>, Problem> {
    let (one, other) = (path.id("session_id")?, path.id("other")?);
    let ancestor = common_ancestor(&call.api.runs, &call.tenant, one, other).await?;
    Ok(Json(ancestor))
}

/// Merges the files, variables and resources of another session over the common ancestor. Makes a
/// session that continues the session in the path with the same messages and context.
#[utoipa::path(post, path = "/v1/sessions/{session_id}/merge", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), request_body = MergeSession, responses(
    (status = 201, description = "The new session with its environment", body = SessionView, headers(("Location"), ("ETag"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, CHILD_PROBLEMS, [ProblemCode::NoCommonAncestor, ProblemCode::MergeConflict, ProblemCode::MalformedId]]))))]
pub(in crate::http) async fn merge_session(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    KeyedBody { key, body, .. }: KeyedBody<MergeSession>,
) -> Result<Response, Problem> {
    query.finish()?;
    let request = MergeRequest {
        session_id: path.id("session_id")?,
        with: parse_id("/with", &body.with)?,
        conflict: body.conflict.unwrap_or_default(),
        idempotency: key,
    };
    let merged = merge_files(&call.api.runs, &call.tenant, request).await;
    let child = merged.map_err(|refusal| call.problem(refusal))?;
    respond_child(&call, child).await
}
