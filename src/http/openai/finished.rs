//! Responses of runs that are stored, or that this request follows to their end.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};

use super::body::{json, mark_started};
use super::failure::Failure;
use crate::http::auth::Call;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::response::{ResponseObject, ResponseSettings, response_of};
use crate::http::faces::turn::{Turn, TurnReader};
use crate::http::problem::Problem;
use crate::run::RunHandle;
use crate::run::read::{Followed, RunMessages, run_messages};
use agent::record::{RunEventPayload, RunRecord};
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::{Value, weight};

/// A response that is stored.
#[derive(Debug)]
pub(super) struct StoredResponse {
    /// The record of its run.
    pub(super) record: RunRecord,
    /// The response as JSON.
    pub(super) body: Value,
}

impl StoredResponse {
    /// Returns the items of the output.
    pub(super) fn output(&self) -> &[Value] {
        self.body["output"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Reads a response with its items; `None` if there is none, or if it is not stored.
pub(super) async fn stored_response(call: &Call, run_id: RunId) -> Result<Option<StoredResponse>, Problem> {
    let Some(messages) = stored_messages(call, run_id).await? else {
        return Ok(None);
    };
    let settings = settings_of(call);
    let bytes = weight(&messages.steps) as u64;
    let made = by_size(&call.tenant, bytes, move || {
        let response = stored(&messages, &settings);
        serde_json::to_value(response).map(|body| StoredResponse {
            record: messages.record,
            body,
        })
    });
    made.await.map(Some).map_err(Problem::internal)
}

/// Reads a run with its messages; `None` if there is none, or if it is not stored.
pub(super) async fn stored_messages(call: &Call, run_id: RunId) -> Result<Option<RunMessages>, Problem> {
    let messages = run_messages(&call.api.runs, &call.tenant, run_id).await?;
    Ok(messages.filter(|messages| messages.record.summary.publishes))
}

/// Makes the response of a run from what is stored of it.
fn stored(messages: &RunMessages, settings: &ResponseSettings) -> ResponseObject {
    let record = &messages.record;
    let echo = Echo::of_stored(record.echo.as_deref());
    response_of(record, &Turn::of_stored(messages), &echo, settings)
}

/// Follows a run to its end, and responds with its response, or with the error that failed it.
pub(super) async fn end_of(call: &Call, handle: RunHandle) -> Result<Response, Problem> {
    let run_id = handle.run_id;
    let (caller, mut events) = handle.into_events();
    let mut reader = TurnReader::default();
    let mut has_begun = false;
    while let Some(followed) = events.next().await {
        caller.note_sent(&followed);
        let Followed::Event(event) = followed else { break };
        // The first events of a repeated request's run may no longer be retained.
        has_begun |= matches!(event.payload, RunEventPayload::Started(_));
        reader.read(&event);
        if let Some(record) = event.payload.record() {
            if has_begun {
                return respond(call, record, reader.turn()).await;
            }
            break;
        }
    }
    let messages = run_messages(&call.api.runs, &call.tenant, run_id).await?;
    let messages = messages.ok_or_else(|| Problem::internal("the run is gone before its response"))?;
    respond(call, &messages.record, &Turn::of_stored(&messages)).await
}

async fn respond(call: &Call, record: &RunRecord, turn: &Turn) -> Result<Response, Problem> {
    if let Some(failure) = Failure::of_awaited(record) {
        return Ok(failure.respond(record));
    }
    let echo = Echo::of_stored(record.echo.as_deref());
    let response = response_of(record, turn, &echo, &settings_of(call));
    json(call, response, weight(&record.output)).await
}

/// Returns the settings of responses for a caller.
pub(super) fn settings_of(call: &Call) -> ResponseSettings {
    ResponseSettings {
        openai: Arc::clone(&call.api.openai),
        tenant: call.tenant.clone(),
    }
}

/// Makes a response from a problem after a run was started, which no client may repeat.
pub(super) fn after_start(run_id: RunId, is_replay: bool, result: Result<Response, Problem>) -> Response {
    let mut response = result.into_response();
    mark_started(&mut response, run_id);
    crate::http::idempotency::mark_replay(&mut response, is_replay);
    response
}
