//! Responses of runs that are stored, or that this request follows to their end.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};

use super::body::mark_started;
use crate::http::auth::Call;
use crate::http::face_stream::follows;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::response::{ResponseObject, ResponseSettings, response_of};
use crate::http::faces::turn::{Turn, TurnReader};
use crate::http::problem::Problem;
use crate::run::RunHandle;
use crate::run::read::{Followed, RunMessages, run_lookup, run_messages};
use agent::record::RunRecord;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::{Value, weight};

/// Reads a response with its items, as JSON; `None` as for [`stored_run`].
pub(super) async fn stored_response(call: &Call, run_id: RunId) -> Result<Option<Value>, Problem> {
    let Some(messages) = stored_messages(call, run_id).await? else {
        return Ok(None);
    };
    let settings = settings_of(call);
    let bytes = weight(&messages.steps) as u64;
    let made = by_size(&call.tenant, bytes, move || {
        serde_json::to_value(stored(&messages, &settings))
    });
    made.await.map(Some).map_err(Problem::internal)
}

/// Reads the run of a response; `None` if there is none, if it is not stored, or if it was deleted.
pub(super) async fn stored_run(call: &Call, run_id: RunId) -> Result<Option<RunRecord>, Problem> {
    let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
    Ok(run.filter(is_response))
}

/// Reads the run of a response with its messages; `None` as for [`stored_run`].
pub(super) async fn stored_messages(call: &Call, run_id: RunId) -> Result<Option<RunMessages>, Problem> {
    let messages = run_messages(&call.api.runs, &call.tenant, run_id).await?;
    Ok(messages.filter(|messages| is_response(&messages.record)))
}

/// Returns whether clients can name the response of a run: it is stored, and was not deleted.
fn is_response(run: &RunRecord) -> bool {
    run.summary.publishes && !run.is_hidden
}

/// Makes the response of a run from what is stored of it.
fn stored(messages: &RunMessages, settings: &ResponseSettings) -> ResponseObject {
    let record = &messages.record;
    let echo = Echo::of_stored(record.echo.as_deref());
    response_of(record, &Turn::of_stored(messages), &echo, settings)
}

/// Follows a run to its end. Returns its record and its turn.
pub(super) async fn ended(call: &Call, handle: RunHandle) -> Result<(Arc<RunRecord>, Turn), Problem> {
    let run_id = handle.run_id;
    let (caller, mut events) = handle.into_ended_events().await;
    let mut reader = TurnReader::default();
    let (mut last, mut has_all) = (0, true);
    while let Some(followed) = events.next().await {
        caller.note_sent(&followed);
        let Followed::Event(event) = followed else { break };
        // Events may no longer be retained, such as the first ones of a repeated request's run.
        has_all &= follows(&event, last);
        last = event.sequence;
        reader.read(&event);
        if let Some(record) = event.payload.record() {
            if has_all {
                return Ok((Arc::clone(record), reader.into_turn()));
            }
            break;
        }
    }
    let messages = run_messages(&call.api.runs, &call.tenant, run_id).await?;
    let messages = messages.ok_or_else(|| Problem::internal("the run is gone before its response"))?;
    let summary = &messages.record.summary;
    if !summary.publishes && summary.status.has_session() {
        return Err(Problem::internal("the output of the run is gone before its response"));
    }
    let turn = Turn::of_stored(&messages);
    Ok((Arc::new(messages.record), turn))
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
