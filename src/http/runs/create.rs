//! `POST /v1/runs`.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tracing::Span;
use tracing::field::display;

use super::create_body::CreateRun;
use super::event_forms::EventForm;
use super::events;
use super::preference::Preference;
use super::show::show;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::observe::StartedRun;
use crate::http::parameters::QueryParameters;
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::{self, RunHandle, RunRequest};
use agent::record::{RunMode, RunRecord, RunView};
use tasks::off_thread::by_size;
use values::limits::TenantShare;

/// Runs an agent.
///
/// An accepted run is answered with 200, even if it fails: a failed one has the status `failed` and
/// an `error`. In mode `stream` the response is `text/event-stream`; the `id` of an event is its
/// number, its `event` the name, its `data` JSON. In mode `async` the run is in the queue, and
/// outlives the connection and the process.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", params(
    ("Idempotency-Key" = Option<String>, Header),
    ("Prefer" = Option<String>, Header),
), request_body = CreateRun, responses(
    (status = 200, description = "The result, or the stream of events, each of which has an `Event` in its line `data`",
        content((RunView = "application/json"), (EventForm = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
    (status = 202, description = "The run is in the queue, or goes on after the process that has accepted it", body = RunView, headers(("Location"), ("Preference-Applied"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn create_run(
    call: Call,
    query: QueryParameters,
    preference: Preference,
    body: KeyedBody<CreateRun>,
) -> Result<Response, Problem> {
    query.finish()?;
    start_run(call, preference, body).await
}

/// Starts a run and responds as its mode says.
pub(super) async fn start_run(
    call: Call,
    preference: Preference,
    KeyedBody {
        key,
        body,
        bytes,
        origin,
    }: KeyedBody<CreateRun>,
) -> Result<Response, Problem> {
    let (api, key_limits) = (Arc::clone(&call.api), call.run_limits());
    let decode = move || body.into_request(&api.limits, preference, key, key_limits);
    let request = by_size(&call.tenant, bytes, decode).await?;
    let request = RunRequest {
        origin,
        created_by: call.creator(),
        ..request
    };
    let mode = request.mode;
    let handle = run::start(&call.api.runs, call.tenant.clone(), request)
        .await
        .map_err(|refusal| call.problem(refusal))?;
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    Span::current().record("run_id", display(run_id));
    // Callers that repeat a request wait for its run, or follow it, like other readers.
    let reads = match mode {
        RunMode::Sync => !handle.has_ended(),
        RunMode::Stream => true,
        RunMode::Async => false,
    };
    let reader = (is_replay && reads)
        .then(|| call.api.take_reader(&call.tenant))
        .transpose()?;
    let mut response = match mode {
        RunMode::Sync => result(&call, handle.result().await?).await.into_response(),
        RunMode::Async => accepted(&call, handle.detach()).await.into_response(),
        RunMode::Stream => stream(call, handle, reader),
    };
    response.extensions_mut().insert(StartedRun(run_id));
    mark_replay(&mut response, is_replay);
    preference.mark(&mut response, mode);
    Ok(response)
}

/// Responds with a run that has not ended, and with its location.
async fn accepted(call: &Call, run: Arc<RunRecord>) -> Result<Response, Problem> {
    let location = format!("/v1/runs/{}", run.summary.run_id);
    let location = HeaderValue::from_str(&location).map_err(Problem::internal)?;
    let mut response = show(call, run).await?;
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn stream(call: Call, handle: RunHandle, reader: Option<TenantShare>) -> Response {
    let (caller, events) = handle.into_events();
    events::respond(call, events, Some(caller), reader)
}

/// Responds with the result of a run. A lost race for the base is refused like an early conflict.
/// The problem names the run that won.
async fn result(call: &Call, run: Arc<RunRecord>) -> Result<Response, Problem> {
    let race = ProblemCode::BaseSessionConflict;
    let lost = run.summary.error.as_ref().filter(|error| error.code == race.as_str());
    match lost {
        Some(error) => Err(Problem::new(race, error.message.clone()).with_run(error.conflicting_run_id)),
        // The run outlives this process. The response says where to follow the run, so that the
        // caller does not repeat the request.
        None if !run.summary.status.is_terminal() => accepted(call, run).await,
        None => show(call, run).await,
    }
}
