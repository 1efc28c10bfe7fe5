//! `POST /v1/runs/{run_id}/answers`.

use axum::response::Response;

use super::create::start_run;
use super::create_body::CreateRun;
use super::event_forms::EventForm;
use super::preference::Preference;
use super::show::found;
use crate::http::auth::Call;
use crate::http::idempotency::KeyedBody;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::read::run_lookup;
use crate::run::refusal::Refusal;
use agent::record::{RunStatus, RunView};
use values::ids::RunId;

/// Answers the open calls of a run, and so continues its session.
///
/// The body has the fields of `POST /v1/runs` without `base_session_id` and `thread`, and the
/// response is the same. The new run continues the session of the waiting run, and its thread if
/// the waiting run moved one.
#[utoipa::path(post, path = "/v1/runs/{run_id}/answers", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
    ("Prefer" = Option<String>, Header),
), request_body = CreateRun, responses(
    (status = 200, description = "The result, or the stream of events, each of which has an `Event` in its line `data`",
        content((RunView = "application/json"), (EventForm = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
    (status = 202, description = "The run is in the queue, or goes on after the process that has accepted it", body = RunView, headers(("Location"), ("Preference-Applied"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn answer_run(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    preference: Preference,
    body: KeyedBody<CreateRun>,
) -> Result<Response, Problem> {
    query.finish()?;
    let run_id: RunId = path.id("run_id")?;
    let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
    let run = found(&call, run_id, run).await?.summary;
    // An answered run may be answered by a repeated request, or in a branch.
    if !matches!(run.status, RunStatus::Waiting | RunStatus::Answered) {
        let status = run.status;
        return Err(Refusal::RunNotWaiting { run_id, status }.into());
    }
    if !run.publishes {
        return Err(Refusal::Unpublished { run_id }.into());
    }
    let thread = run.moved_thread().cloned();
    let body = body.try_map(|body| body.answering(run.session_id, thread))?;
    start_run(call, preference, body).await
}
