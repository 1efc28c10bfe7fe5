//! `POST /v1/runs`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

use super::events;
use super::request::CreateRun;
use super::view::RunView;
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::codes::ProblemCode;
use crate::http::json_body::JsonBody;
use crate::http::parameters::QueryParameters;
use crate::http::problem::{Problem, ProblemBody};
use crate::record::{RunMode, RunRecord};

/// Runs an agent.
///
/// A run that is accepted answers 200 whatever becomes of it: a failed one has the status `failed` and an `error`. In mode `stream` the
/// response is `text/event-stream`; the `id` of an event is its number, its `event` the name, its `data` JSON.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = CreateRun, responses(
    (status = 200, description = "The result, or the stream of events", content((RunView = "application/json"), (String = "text/event-stream"))),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn create_run(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    query: QueryParameters,
    JsonBody(body): JsonBody<CreateRun>,
) -> Result<Response, Problem> {
    query.finish()?;
    let request = body.into_request(&api.limits)?;
    let mode = request.mode;
    let handle = api.service.runs.start(tenant, request).await?;
    match mode {
        RunMode::Sync => respond(handle.result().await),
        RunMode::Stream => Ok(events::respond(handle.into_events(), api.limits.keep_alive_interval)),
    }
}

/// A lost race for the base is the caller's wish come true, so it answers as the early refusal does: with the run that won.
fn respond(run: RunRecord) -> Result<Response, Problem> {
    let conflict = run
        .summary
        .error
        .as_ref()
        .filter(|error| error.code == ProblemCode::BaseSessionConflict.as_str());
    match conflict {
        Some(error) => {
            Err(Problem::new(ProblemCode::BaseSessionConflict, error.message.clone())
                .with_run(error.conflicting_run_id))
        }
        None => Ok(Json(RunView::from(run)).into_response()),
    }
}
