//! Stored responses: retrieves, follows, cancels and deletes them, and lists their input.

use axum::response::Response;

use super::body::{DeletedObject, OpenAiObject, mark_started, no_response, response_in};
use super::finished::{settings_of, stored_messages, stored_response, stored_run};
use super::lists::take_window;
use super::response_events::{ResponseWriter, stored_frames};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::face_stream;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::ids::response_id;
use crate::http::faces::openai::response::ResponseStream;
use crate::http::faces::openai::stored_items::input_items;
use crate::http::guards::within;
use crate::http::json_response::json_with_room;
use crate::http::parameters::{PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::run::read::{Followed, follow};
use crate::run::{end_run, hide_run};
use agent::record::RunControl;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::{Value, weight};

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
    let bytes = weight(&response);
    json_with_room(&call, response, bytes).await
}

/// Streams the events of a response from the first on, or after the one with a number. Events that
/// are no longer retained are made from what is stored.
pub(super) async fn replay(call: Call, run_id: RunId, after: Option<u64>) -> Result<Response, Problem> {
    let missing = || no_response(&response_id(run_id));
    let run = stored_run(&call, run_id).await?.ok_or_else(missing)?;
    let counted = call.api.take_reader(&call.tenant)?;
    let echo = Echo::of_stored(run.echo.as_deref());
    let has_ended = run.summary.status.is_terminal();
    let stream = ResponseStream::new(settings_of(&call), echo, run.summary);
    let writer = ResponseWriter::after(stream, after);
    let following = follow(&call.api.runs, &call.tenant, run_id, 0);
    let following = within(call.api.limits.request_timeout, following).await??;
    let mut events = following.ok_or_else(missing)?.events;
    if !has_ended {
        return Ok(face_stream::respond(call, None, events, None, Some(counted), writer));
    }
    if let Some(Followed::Event(first)) = events.next().await
        && first.sequence == 1
    {
        return Ok(face_stream::respond(
            call,
            Some(first),
            events,
            None,
            Some(counted),
            writer,
        ));
    }
    if after.is_some() {
        let words = "the events of this response are no longer retained";
        return Err(invalid("starting_after", words));
    }
    let messages = stored_messages(&call, run_id).await?.ok_or_else(missing)?;
    let frames = stored_frames(&messages, &settings_of(&call));
    Ok(face_stream::respond_with(frames.into()))
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
    stored_run(&call, run_id).await?.ok_or_else(missing)?;
    // A run that is still at work then is shown as such.
    Box::pin(end_run(runs, tenant, run_id, RunControl::Cancel)).await?;
    let mut body = Box::pin(stored_response(&call, run_id)).await?.ok_or_else(missing)?;
    if !call.may_read() {
        body["output"] = Value::Array(Vec::new());
        body["instructions"] = Value::Null;
    }
    let bytes = weight(&body);
    let mut response = json_with_room(&call, body, bytes).await?;
    mark_started(&mut response, run_id);
    Ok(response)
}

/// Deletes a response, which is cancelled first if it has not ended.
///
/// Responses that continue it stay as they are, and so does its conversation.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", tag = "openai", params(
    ("response_id" = String, Path),
), responses(
    (status = 200, description = "It is gone", body = OpenAiObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::RunUnreachable]))))]
pub(in crate::http) async fn delete_response(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let run_id = response_in(&path)?;
    let id = response_id(run_id);
    let run = stored_run(&call, run_id).await?.ok_or_else(|| no_response(&id))?;
    Box::pin(hide_run(&call.api.runs, &call.tenant, run.summary, call.requester())).await?;
    json_with_room(&call, DeletedObject::new("response", id), 0).await
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
    let bytes = weight(&messages.input);
    let list = by_size(&call.tenant, bytes as u64, move || window.of(input_items(&messages))).await;
    json_with_room(&call, list, bytes).await
}
