//! `POST /v1/chat/completions`.

use std::mem;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;

use super::base::Base;
use super::body::OpenAiObject;
use super::finished::{after_start, ended, stored_messages};
use super::start::{Envelope, counted, start};
use crate::http::auth::Call;
use crate::http::face_stream::{self, DONE, FrameWriter, write_frame};
use crate::http::faces::openai::chat::{ChatCompletion, ChatReader};
use crate::http::faces::openai::failure::Failure;
use crate::http::faces::openai::request::{CreateChat, arrange};
use crate::http::headers::single;
use crate::http::idempotency::{KeyedBody, THREAD};
use crate::http::json_response::json_with_room;
use crate::http::problem::Problem;
use crate::http::problem_groups::OPENAI_PROBLEMS;
use crate::run::{RunHandle, RunRequest};
use agent::definition::AgentDefinition;
use agent::record::RunEvent;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::{Object, weight};

/// Completes a conversation, as the API of OpenAI does.
///
/// The client sends the whole conversation, and nothing of it is stored. With a thread, named by
/// the header `X-Agent-Thread` or by `metadata.thread`, the conversation is stored there.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai", params(
    ("Idempotency-Key" = Option<String>, Header),
    ("X-Agent-Thread" = Option<String>, Header, description = "The thread to continue; one that does not exist is created"),
), request_body(content = OpenAiObject, description = "The request, as OpenAI describes it"), responses(
    (status = 200, description = "The completion, or the stream of its chunks",
        content((OpenAiObject = "application/json"), (String = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(OPENAI_PROBLEMS))))]
pub(in crate::http) async fn create_completion(
    call: Call,
    headers: HeaderMap,
    body: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let envelope = Envelope {
        key: body.key,
        origin: body.origin,
    };
    let request = read(&call, &headers, body.body, body.bytes).await?;
    let (model, streams, includes_usage) = (request.model.clone(), request.streams, request.includes_usage);
    let is_json = request.wants_json() || has_json_agent(&call, &model).await?;
    let prepared = Box::pin(prepare(&call, request, envelope.key.is_some()));
    let handle = start(&call, envelope, prepared).await?;
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    let responded = if streams {
        let reader = ChatReader::new(model, includes_usage, is_json);
        Box::pin(followed(call, handle, reader)).await
    } else {
        Box::pin(waited(&call, handle, model, is_json)).await
    };
    Ok(after_start(run_id, is_replay, responded))
}

/// Reads the body. Large ones are read beside the async threads.
async fn read(call: &Call, headers: &HeaderMap, body: Object, bytes: u64) -> Result<CreateChat, Problem> {
    let thread = single(headers, THREAD)?.map(str::to_owned);
    let api = Arc::clone(&call.api);
    let read = move || {
        CreateChat::read(
            body,
            thread.as_deref(),
            api.openai.access,
            api.limits.max_input_messages,
        )
    };
    by_size(&call.tenant, bytes, read).await
}

/// Makes the request for a run: from no base, or on a thread that has all but the last messages.
async fn prepare(call: &Call, mut request: CreateChat, has_key: bool) -> Result<RunRequest, Problem> {
    let base = match &request.thread {
        Some(name) => Base::of_thread(call, name).await?.unwrap_or_default(),
        None => Base::default(),
    };
    if base.has_session() {
        request.continue_thread();
    }
    let items = mem::take(&mut request.items);
    let arranged = arrange(items, &base.open_ids(), "messages")?;
    base.continued_by(call, arranged, "messages", request.into_run(has_key))
        .await
}

/// Returns whether the model of a request is an agent whose output is JSON.
async fn has_json_agent(call: &Call, model: &str) -> Result<bool, Problem> {
    if !AgentDefinition::is_valid_name(model) {
        return Ok(false);
    }
    let agent = call.api.runs.agents.lookup(&call.tenant, model).await?;
    Ok(agent.is_some_and(|agent| !agent.definition.response_format.is_text()))
}

/// Streams the chunks of a run. The events of a repeated request's run may no longer be retained.
async fn followed(call: Call, handle: RunHandle, reader: ChatReader) -> Result<Response, Problem> {
    if handle.has_ended() {
        let run_id = handle.run_id;
        handle.detach();
        return replayed(&call, run_id, reader).await;
    }
    let counted = counted(&call, &handle)?;
    let (caller, events) = handle.into_events();
    Ok(face_stream::respond(call, None, events, Some(caller), counted, reader))
}

/// Streams the chunks of a run that has ended, from what is stored of it.
async fn replayed(call: &Call, run_id: RunId, reader: ChatReader) -> Result<Response, Problem> {
    let messages = stored_messages(call, run_id).await?;
    let messages = messages.ok_or_else(|| Problem::internal("the run is gone before its completion"))?;
    let mut frames = Vec::new();
    if let Some(failure) = Failure::of_chat(&messages.record) {
        write_frame(&mut frames, run_id, None, &failure.body());
    } else {
        for chunk in reader.read_stored(&messages) {
            write_frame(&mut frames, run_id, None, &chunk);
        }
    }
    frames.extend_from_slice(DONE);
    Ok(face_stream::respond_with(frames.into()))
}

/// Waits for the end of a run.
async fn waited(call: &Call, handle: RunHandle, model: String, is_json: bool) -> Result<Response, Problem> {
    let _counted = counted(call, &handle)?;
    let (run, turn) = ended(call, handle).await?;
    if let Some(failure) = Failure::of_chat(&run) {
        return Ok(failure.respond(&run));
    }
    let completion = ChatCompletion::new(model, &run, &turn, is_json);
    json_with_room(call, completion, weight(&run.output)).await
}

impl FrameWriter for ChatReader {
    fn write(&mut self, event: &RunEvent, frames: &mut Vec<u8>) {
        let failure = event.payload.record().and_then(|record| Failure::of_chat(record));
        if let Some(failure) = failure {
            write_frame(frames, event.run_id, None, &failure.body());
            return;
        }
        for chunk in self.read(event) {
            write_frame(frames, event.run_id, None, &chunk);
        }
    }

    fn write_dropped(&mut self, run_id: RunId, message: &str, frames: &mut Vec<u8>) {
        write_frame(frames, run_id, None, &Failure::of_dropped(message).body());
    }
}
