//! Ends runs.

use axum::http::StatusCode;

use super::runs::run_of;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::run::{control_run, end_run};
use agent::record::RunControl;

/// Ends a run: with what it has done, or with `action=rollback` without anything. One that has
/// ended stays as it is.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/runs/{run_id}/cancel", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 202, description = "The run ends soon, or has ended"),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::RunUnreachable]))))]
pub(in crate::http) async fn cancel_langgraph_run(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<StatusCode, Problem> {
    let run = run_of(&call, &path).await?;
    let control = match query.text("action")?.as_deref() {
        Some("rollback") => RunControl::Cancel,
        _ => RunControl::Stop,
    };
    let waits = query
        .text("wait")?
        .is_some_and(|wait| ["1", "true"].contains(&wait.as_str()));
    if !run.summary.status.is_terminal() {
        let (runs, tenant, run_id) = (&call.api.runs, &call.tenant, run.summary.run_id);
        let ended = if waits {
            end_run(runs, tenant, run_id, control).await.map(drop)
        } else {
            control_run(runs, tenant, run_id, control).await.map(drop)
        };
        ended.map_err(|refusal| call.problem(refusal))?;
    }
    Ok(StatusCode::ACCEPTED)
}
