//! `POST /v1/responses`.

use std::mem;
use std::sync::Arc;

use axum::response::Response;

use super::base::Base;
use super::body::{OpenAiObject, opener};
use super::finished::{after_start, ended, settings_of, stored_response};
use super::references::resolve;
use super::response_by_id::replay;
use super::response_events::ResponseWriter;
use super::start::{Envelope, counted, start};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::face_stream;
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::openai::request::{CreateResponse, arrange, no_conversation};
use crate::http::faces::openai::response::{ResponseStream, response_of};
use crate::http::faces::turn::Turn;
use crate::http::idempotency::KeyedBody;
use crate::http::json_response::json_with_room;
use crate::http::problem::Problem;
use crate::http::problem_groups::OPENAI_PROBLEMS;
use crate::run::{RunHandle, RunRequest};
use tasks::off_thread::by_size;
use values::json::{Object, weight};

/// Responds to an input, as the API of OpenAI does.
///
/// `model` is the name of an agent, or `PROVIDER/MODEL`. A waiting run is a response with the
/// status `completed` and calls to answer. Clients repeat requests by their own rules; the header
/// `x-should-retry` says whether they should.
#[utoipa::path(post, path = "/v1/responses", tag = "openai", params(
    ("Idempotency-Key" = Option<String>, Header),
), request_body(content = OpenAiObject, description = "The request, as OpenAI describes it"), responses(
    (status = 200, description = "The response, or the stream of its events",
        content((OpenAiObject = "application/json"), (String = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([OPENAI_PROBLEMS, [[ProblemCode::PreviousResponseNotFound, ProblemCode::ThreadNotFound]]]))))]
pub(in crate::http) async fn create_response(call: Call, body: KeyedBody<Object>) -> Result<Response, Problem> {
    let request = read(&call, body.body, body.bytes).await?;
    let (echo, streams) = (Arc::clone(&request.echo), request.streams);
    let envelope = Envelope {
        // A response that is not stored can't be repeated.
        key: body.key.filter(|_| echo.store),
        origin: body.origin,
    };
    let prepared = Box::pin(prepare(&call, request));
    let handle = start(&call, envelope, prepared).await?;
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    let responded = if streams {
        Box::pin(followed(call, handle, echo)).await
    } else if echo.background {
        accepted(&call, handle, &echo).await
    } else {
        waited(&call, handle, echo).await
    };
    Ok(after_start(run_id, is_replay, responded))
}

/// Reads the body. Large ones are read beside the async threads.
async fn read(call: &Call, body: Object, bytes: u64) -> Result<CreateResponse, Problem> {
    let caller = call.clone();
    let read = move || {
        let api = &caller.api;
        CreateResponse::read(body, opener(&caller), api.openai.access, api.limits.max_input_messages)
    };
    by_size(&call.tenant, bytes, read).await
}

/// Makes the request for a run, with everything that its items refer to.
async fn prepare(call: &Call, mut request: CreateResponse) -> Result<RunRequest, Problem> {
    let base = match (request.previous, &request.conversation) {
        (Some(run_id), _) => Base::of_response(call, run_id).await?,
        (None, Some(name)) => Base::of_thread(call, name)
            .await?
            .ok_or_else(|| no_conversation(name.as_str()))?,
        (None, None) => Base::of_decisions(call, &mut request.items).await?,
    };
    let items = resolve(call, mem::take(&mut request.items), "input", base.session_id()).await?;
    let arranged = arrange(items, &base.open_ids(), "input")?;
    base.continued_by(call, arranged, "input", request.into_run()).await
}

/// Streams the events of a run. Those of a repeated request's run may no longer be retained.
async fn followed(call: Call, handle: RunHandle, echo: Arc<Echo>) -> Result<Response, Problem> {
    if handle.has_ended() {
        let run_id = handle.run_id;
        handle.detach();
        return replay(call, run_id, None).await;
    }
    let counted = counted(&call, &handle)?;
    let stream = ResponseStream::new(settings_of(&call), echo, handle.summary().clone());
    let writer = ResponseWriter::after(stream, None);
    let (caller, events) = handle.into_events();
    Ok(face_stream::respond(call, None, events, Some(caller), counted, writer))
}

/// Responds with a run that works in the background, or that has ended if the request is repeated.
async fn accepted(call: &Call, handle: RunHandle, echo: &Arc<Echo>) -> Result<Response, Problem> {
    if handle.has_ended()
        && let Some(response) = stored_response(call, handle.run_id).await?
    {
        let bytes = weight(&response);
        return json_with_room(call, response, bytes).await;
    }
    let run = handle.detach();
    json_with_room(call, response_of(&run, &Turn::default(), echo, &settings_of(call)), 0).await
}

/// Waits for the end of a run. The run of an earlier request has that request's echo.
async fn waited(call: &Call, handle: RunHandle, echo: Arc<Echo>) -> Result<Response, Problem> {
    let _counted = counted(call, &handle)?;
    let echo = (!handle.is_replay).then_some(echo);
    let (record, turn) = Box::pin(ended(call, handle)).await?;
    if let Some(failure) = Failure::of_awaited(&record) {
        return Ok(failure.respond(&record));
    }
    let echo = echo.unwrap_or_else(|| Echo::of_stored(record.echo.as_deref()));
    let response = response_of(&record, &turn, &echo, &settings_of(call));
    json_with_room(call, response, weight(&record.output)).await
}
