//! `DELETE /v1/sessions/{session_id}`.

use axum::http::StatusCode;

use super::view::found;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::run::{Removal, remove_session};
use store::keys::Scope;

/// Removes a session with its subagents' sessions, its run and, if wanted, all sessions that
/// continue it, which needs the scope `admin`.
#[utoipa::path(delete, path = "/v1/sessions/{session_id}", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("descendants" = Option<bool>, Query, description = "Also removes all sessions that continue it; needs the scope `admin`"),
), responses(
    (status = 204, description = "It is gone"),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::SessionHasDescendants, ProblemCode::SessionInUse]]))))]
pub(in crate::http) async fn delete_session(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<StatusCode, Problem> {
    let descendants = query.parsed("descendants")?.unwrap_or(false);
    query.finish()?;
    if descendants {
        call.check_scope(Scope::Admin)?;
    }
    let session_id = path.id("session_id")?;
    let by = call.requester();
    let problem = match remove_session(&call.api.runs, &call.tenant, session_id, descendants, by).await? {
        Removal::Removed => return Ok(StatusCode::NO_CONTENT),
        Removal::NotFound => return found(&call, session_id, None).await,
        Removal::HasDescendants => Problem::new(
            ProblemCode::SessionHasDescendants,
            format!("other sessions continue the session {session_id}"),
        ),
        Removal::InUse(run_id) => Problem::new(
            ProblemCode::SessionInUse,
            format!("a thread points to the session {session_id} or to one that would go with it, an active run begins from there, or one is being published that does"),
        )
        .with_run(run_id),
    };
    Err(problem)
}
