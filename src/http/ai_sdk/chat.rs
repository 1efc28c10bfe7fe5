//! `POST /v1/ai-sdk/{agent}/chat`.

use axum::response::Response;
use tracing::Span;
use tracing::field::display;

use super::body::AiSdkObject;
use super::chat_request::prepare;
use super::chat_stream::respond;
use crate::http::auth::Call;
use crate::http::chat_start::{Envelope, Way, check_agent, make_way, start, take_grace};
use crate::http::chat_thread::ChatThread;
use crate::http::faces::ai_sdk::ChatRequest;
use crate::http::faces::chat::ChunkWriter;
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::observe::StartedRun;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::{OnDisconnect, RunHandle};
use agent::record::RunControl;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::Object;

/// Answers the last message of a page, or goes on after its answers to open calls, as `useChat` of
/// the AI SDK asks for it.
///
/// The id of the chat is the name of its thread. A message on a busy thread interrupts the run that
/// works there. A run without any reader ends after a while, with what it has done.
#[utoipa::path(post, path = "/v1/ai-sdk/{agent}/chat", tag = "ai_sdk", params(
    ("Idempotency-Key" = Option<String>, Header),
    ("agent" = String, Path, description = "The name of the agent"),
    ("on_disconnect" = Option<OnDisconnect>, Query, description = "The effect of the loss of all readers, by default `stop`"),
    ("grace_seconds" = Option<u32>, Query, minimum = 1, maximum = 3600, description = "How long a run goes on without any reader, by default 15"),
), request_body(content = AiSdkObject, description = "The request, as the AI SDK sends it"), responses(
    (status = 200, description = "The chunks of the message", content((String = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn create_chat_message(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    body: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let agent = path.into_text("agent");
    let reader_grace = take_grace(query)?;
    let KeyedBody {
        key,
        body,
        bytes,
        origin,
    } = body;
    let read = by_size(&call.tenant, bytes, move || ChatRequest::read(body)).await?;
    let thread = ChatThread::new(&call, read.thread.clone());
    if let Some(key) = &key
        && let Some(handle) = thread.known_run(key).await?
    {
        let turn = Box::pin(thread.turn_of(handle.run_id)).await?;
        return followed(call.clone(), handle, turn);
    }
    check_agent(&call, &agent).await?;
    // Refuses a message that makes no sense before it interrupts anything.
    let mut prepared = Box::pin(prepare(&thread, &read)).await?;
    if prepared.interrupts {
        match make_way(&thread, key.as_ref(), RunControl::Stop).await? {
            Way::Free => (),
            Way::Cleared => prepared = Box::pin(prepare(&thread, &read)).await?,
            Way::Known(handle) => return followed(call.clone(), handle, None),
        }
    }
    let envelope = Envelope {
        agent,
        thread: Some(thread.name.clone()),
        key,
        on_disconnect: OnDisconnect::Continue,
        reader_grace,
        origin,
    };
    let started = start(&call, envelope, prepared.request).await;
    let handle = started.map_err(|refusal| call.problem(refusal))?;
    followed(call.clone(), handle, prepared.turn)
}

/// Follows a run. `turn` is the first run of its turn, if an earlier run has begun it.
fn followed(call: Call, handle: RunHandle, turn: Option<RunId>) -> Result<Response, Problem> {
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    Span::current().record("run_id", display(run_id));
    let counted = is_replay.then(|| call.api.take_reader(&call.tenant)).transpose()?;
    let (caller, events) = handle.into_events();
    let writer = ChunkWriter::new(turn);
    let mut response = respond(call, events, Some(caller), counted, writer);
    response.extensions_mut().insert(StartedRun(run_id));
    mark_replay(&mut response, is_replay);
    Ok(response)
}
