//! `POST /v1/runs/{run_id}/stop`, `/cancel` and `/steer`: controls active runs.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::headers::is_visible;
use crate::http::idempotency::{KeyedBody, KeyedRequest};
use crate::http::input::{RunInput, decode_input};
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::run::{self, ControlOutcome, InputMessage, RequestKey};
use agent::record::{MAX_MESSAGE_KEY_BYTES, RunControl, RunSummaryView, SteeringStatus};
use values::ids::RunId;
use values::message::Role;

/// A message to a run at work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SteerRun {
    /// Your name for the message: 1 to 128 visible ASCII characters. A second message with the same
    /// id is not added, and its response shows the status of the first.
    #[schema(pattern = "^[!-~]{1,128}$")]
    id: String,
    /// One message of the user, in any form of an input.
    #[schema(value_type = RunInput)]
    input: Box<RawValue>,
}

/// The status of a message to a run at work.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Steering)]
pub(in crate::http) struct SteeringView {
    /// The sender's name for the message.
    id: String,
    /// Its status.
    status: SteeringStatus,
}

/// The problems of routes that control an active run.
const CONTROL_PROBLEMS: &[ProblemCode] = &[ProblemCode::RunNotFound, ProblemCode::RunUnreachable];

/// Ends a run with its messages so far.
///
/// The step at work is cut, and the session is published with the status `stopped`. May be
/// repeated. The response has no output: reading it takes the scope `sessions:read`.
#[utoipa::path(post, path = "/v1/runs/{run_id}/stop", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), responses(
    (status = 202, description = "The request is accepted; the run is shown with its current status, without its output", body = RunSummaryView),
    (status = 200, description = "The run had ended before", body = RunSummaryView),
), extensions(("x-problems" = json!(CONTROL_PROBLEMS))))]
pub(in crate::http) async fn stop_run(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    KeyedRequest(key): KeyedRequest,
) -> Result<(StatusCode, Json<RunSummaryView>), Problem> {
    query.finish()?;
    control(&call, path.id("run_id")?, key, RunControl::Stop).await
}

/// Ends a run at once; it publishes nothing. May be repeated.
#[utoipa::path(post, path = "/v1/runs/{run_id}/cancel", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), responses(
    (status = 202, description = "The request is accepted; the run is shown with its current status, without its output", body = RunSummaryView),
    (status = 200, description = "The run had ended before", body = RunSummaryView),
), extensions(("x-problems" = json!(CONTROL_PROBLEMS))))]
pub(in crate::http) async fn cancel_run(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    KeyedRequest(key): KeyedRequest,
) -> Result<(StatusCode, Json<RunSummaryView>), Problem> {
    query.finish()?;
    control(&call, path.id("run_id")?, key, RunControl::Cancel).await
}

/// Adds a message that the model reads at the run's next step.
#[utoipa::path(post, path = "/v1/runs/{run_id}/steer", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), request_body = SteerRun, responses(
    (status = 202, description = "The message waits for the next step", body = SteeringView),
    (status = 200, description = "The message is part of the conversation, or came too late", body = SteeringView),
), extensions(("x-problems" = json!([CONTROL_PROBLEMS, [ProblemCode::TooManyMessages, ProblemCode::TooManySteeringMessages]]))))]
pub(in crate::http) async fn steer_run(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    KeyedBody { key, body, .. }: KeyedBody<SteerRun>,
) -> Result<(StatusCode, Json<SteeringView>), Problem> {
    query.finish()?;
    let run_id: RunId = path.id("run_id")?;
    let (id, message) = body.into_message()?;
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    run::check_key(runs, tenant, key.as_ref(), run_id.as_uuid()).await?;
    let status = run::steer_run(runs, tenant, run_id, id.clone(), message).await?;
    let code = accepted_if(status == SteeringStatus::Received);
    Ok((code, Json(SteeringView { id, status })))
}

async fn control(
    call: &Call,
    run_id: RunId,
    key: Option<RequestKey>,
    control: RunControl,
) -> Result<(StatusCode, Json<RunSummaryView>), Problem> {
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    run::check_key(runs, tenant, key.as_ref(), run_id.as_uuid()).await?;
    let ControlOutcome { run, came_too_late } = run::control_run(runs, tenant, run_id, control).await?;
    let mut summary = run.summary.clone();
    if !call.may_read() {
        summary.metadata.clear();
        summary.error = None;
    }
    Ok((accepted_if(!came_too_late), Json(summary.into())))
}

fn accepted_if(is_pending: bool) -> StatusCode {
    if is_pending {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    }
}

impl SteerRun {
    /// Checks the values, and returns the sender's name and the message.
    fn into_message(self) -> Result<(String, InputMessage), Problem> {
        if !is_visible(&self.id) || self.id.len() > MAX_MESSAGE_KEY_BYTES {
            let words = format!("an id has 1 to {MAX_MESSAGE_KEY_BYTES} visible ASCII characters");
            return Err(Problem::invalid_field("/id", words));
        }
        let message = decode_input(&self.input, 1)?.pop();
        let message = message.ok_or_else(|| Problem::invalid_field("/input", "there is no message"))?;
        if message.role != Role::User {
            let words = "only a message of the user can steer a run";
            return Err(Problem::invalid_field("/input/0/role", words));
        }
        Ok((self.id, message))
    }
}
