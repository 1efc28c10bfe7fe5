//! Stored responses: retrieves, follows, cancels and deletes them, and lists their input.

use std::time::Duration;

use axum::response::Response;

use super::body::{DeletedObject, OpenAiObject, json, mark_started, no_response, response_in};
use super::finished::{settings_of, stored_messages, stored_response};
use super::lists::take_window;
use super::response_events::{ResponseWriter, stored_frames};
use super::stream;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::ids::{ItemId, response_id};
use crate::http::faces::openai::response::ResponseStream;
use crate::http::faces::openai::stored_items::{ObjectList, StoredItem, items_of};
use crate::http::guards::within;
use crate::http::parameters::{PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::run::read::{AnsweredStep, Followed, follow, run_lookup, run_wait};
use crate::run::{Removal, control_run, remove_session};
use agent::record::RunControl;
use values::ids::RunId;
use values::json::{Value, weight};

/// How long a cancellation may take until its response shows the end.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// Retrieves a response, or the stream of its events.
#[utoipa::path(get, path = "/v1/responses/{response_id}", tag = "openai", params(
    ("response_id" = String, Path),
    ("stream" = Option<bool>, Query, description = "Whether to respond with the events, from the first on"),
    ("starting_after" = Option<u64>, Query, description = "The number of the last event that the client has"),
), responses(
    (status = 200, description = "The response, or the stream of its events",
        content((OpenAiObject = "application/json"), (String = "text/event-stream"))),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn get_response(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let run_id = response_in(&path)?;
    let after = query.number::<u64>("starting_after")?;
    if query.parsed("stream")?.unwrap_or(false) {
        return Box::pin(replay(call, run_id, after)).await;
    }
    let response = Box::pin(stored_response(&call, run_id)).await?;
    let response = response.ok_or_else(|| no_response(path.text("response_id")))?;
    let bytes = weight(&response.body);
    json(&call, response.body, bytes).await
}

/// Streams the events of a response from the first on, or after the one with a number. Events that
/// are no longer retained are made from what is stored.
async fn replay(call: Call, run_id: RunId, after: Option<u64>) -> Result<Response, Problem> {
    let missing = || no_response(&response_id(run_id));
    let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
    let run = run.filter(|run| run.summary.publishes).ok_or_else(missing)?;
    let counted = call.api.take_reader(&call.tenant)?;
    let echo = Echo::of_stored(run.echo.as_deref());
    let writer = ResponseWriter::after(ResponseStream::new(settings_of(&call), echo), after);
    let following = follow(&call.api.runs, &call.tenant, run_id, 0);
    let following = within(call.api.limits.request_timeout, following).await??;
    let mut events = following.ok_or_else(missing)?.events;
    if !run.summary.status.is_terminal() {
        return Ok(stream::respond(call, None, events, None, Some(counted), writer));
    }
    if let Some(Followed::Event(first)) = events.next().await
        && first.sequence == 1
    {
        return Ok(stream::respond(call, Some(first), events, None, Some(counted), writer));
    }
    if after.is_some() {
        let words = "the events of this response are no longer retained";
        return Err(invalid("starting_after", words));
    }
    let messages = stored_messages(&call, run_id).await?.ok_or_else(missing)?;
    Ok(stream::respond_with(
        &call,
        stored_frames(&messages, &settings_of(&call)),
    ))
}

/// Ends a response at once.
///
/// A response that has ended stays as it is.
#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", tag = "openai", params(
    ("response_id" = String, Path),
), responses(
    (status = 200, description = "The response", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::RunUnreachable]))))]
pub(in crate::http) async fn cancel_response(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let run_id = response_in(&path)?;
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    let missing = || no_response(&response_id(run_id));
    let known = run_lookup(runs, tenant, run_id).await?;
    known.filter(|run| run.summary.publishes).ok_or_else(missing)?;
    let outcome = control_run(runs, tenant, run_id, RunControl::Cancel).await?;
    if !outcome.run.summary.status.is_terminal() {
        // A run that is still at work then is shown as such.
        run_wait(runs, tenant, run_id, CANCEL_PATIENCE).await?;
    }
    let response = Box::pin(stored_response(&call, run_id)).await?.ok_or_else(missing)?;
    let mut body = response.body;
    if !call.may_read() {
        body["output"] = Value::Array(Vec::new());
        body["instructions"] = Value::Null;
    }
    let bytes = weight(&body);
    let mut response = json(&call, body, bytes).await?;
    mark_started(&mut response, run_id);
    Ok(response)
}

/// Deletes a response that no other one continues.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", tag = "openai", params(
    ("response_id" = String, Path),
), responses(
    (status = 200, description = "It is gone", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::SessionHasDescendants, ProblemCode::SessionInUse]))))]
pub(in crate::http) async fn delete_response(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let run_id = response_in(&path)?;
    let id = response_id(run_id);
    let run = run_lookup(&call.api.runs, &call.tenant, run_id).await?;
    let run = run
        .filter(|run| run.summary.publishes)
        .ok_or_else(|| no_response(&id))?;
    if !run.summary.has_session() {
        let words = format!("Response '{id}' has published nothing: it goes away after the time of retention.");
        return Err(Problem::new(ProblemCode::SessionInUse, words));
    }
    match remove_session(&call.api.runs, &call.tenant, run.summary.session_id, false).await? {
        Removal::Removed => (),
        Removal::NotFound => return Err(no_response(&id)),
        Removal::HasDescendants => {
            let words = format!("Other responses continue response '{id}': delete them first.");
            return Err(Problem::new(ProblemCode::SessionHasDescendants, words));
        }
        Removal::InUse(_) => {
            let words = format!("A conversation ends with response '{id}', or another response is being made from it.");
            return Err(Problem::new(ProblemCode::SessionInUse, words));
        }
    }
    let deleted = DeletedObject::new("response", id);
    json(&call, deleted, 0).await
}

/// Lists the items of the input of a response, by default the newest first.
#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", tag = "openai", params(
    ("response_id" = String, Path),
    ("after" = Option<String>, Query, description = "The id of the item before"),
    ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
    ("order" = Option<String>, Query, pattern = "^(asc|desc)$", description = "By default `desc`"),
), responses(
    (status = 200, description = "A list of items", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound]))))]
pub(in crate::http) async fn list_input_items(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let window = take_window(query)?;
    let run_id = response_in(&path)?;
    let messages = stored_messages(&call, run_id).await?;
    let messages = messages.ok_or_else(|| no_response(path.text("response_id")))?;
    // The indexes in the output begin with the id of a step, so none is that small.
    let mut index = 0;
    let mut next_id = |kind| {
        index += 1;
        ItemId { kind, run_id, index }
    };
    let mut items = Vec::new();
    if let Some(answered) = &messages.answered {
        let finished = &answered.step.messages;
        let finished = finished.iter().flat_map(|message| items_of(message, &mut next_id));
        items.extend(finished.filter(|item| is_answer(item, answered)));
    }
    for message in &messages.input {
        items.extend(items_of(message, &mut next_id));
    }
    let list: ObjectList<StoredItem> = window.of(items);
    json(&call, list, 0).await
}

/// Returns whether an item of a step that a run has finished is an answer of the caller.
fn is_answer(item: &StoredItem, answered: &AnsweredStep) -> bool {
    let StoredItem::FunctionCallOutput { call_id, .. } = item else {
        return false;
    };
    answered.open_calls.contains(call_id) && !answered.has_executed(call_id)
}
