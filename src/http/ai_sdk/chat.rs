//! `POST /v1/ai-sdk/{agent}/chat`.

use axum::response::Response;
use tracing::Span;
use tracing::field::display;

use super::body::AiSdkObject;
use super::chat_request::prepare;
use super::chat_stream::respond;
use super::chat_thread::ChatThread;
use crate::http::auth::Call;
use crate::http::checks::check_agent_name;
use crate::http::codes::ProblemCode;
use crate::http::faces::ai_sdk::{ChatRequest, ChunkWriter};
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::observe::StartedRun;
use crate::http::parameters::{PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::{self, OnDisconnect, ReaderGrace, RunHandle, RunRequest, offered_lookup};
use agent::definition::DurabilityChoice;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::Object;

/// How long a run goes on without any reader, in seconds, unless the request says something else.
const GRACE: u32 = 15;

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
        request_id,
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
    let (turn, request) = Box::pin(prepare(&thread, read)).await?;
    let request = RunRequest {
        agent: Some(agent),
        thread: Some(thread.name.clone()),
        idempotency: key,
        durability: Some(DurabilityChoice::Step),
        on_disconnect: OnDisconnect::Continue,
        reader_grace,
        limits: call.run_limits(),
        request_id,
        ..request
    };
    let started = run::start_new(&call.api.runs, call.tenant.clone(), request).await;
    let handle = started.map_err(|refusal| call.problem(refusal))?;
    followed(call.clone(), handle, turn)
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

/// Refuses an agent that does not exist, before a message for it interrupts another one.
async fn check_agent(call: &Call, name: &str) -> Result<(), Problem> {
    check_agent_name(name, "agent")?;
    let found = offered_lookup(&call.api.runs, &call.tenant, &call.run_limits(), name).await?;
    let missing = || Problem::new(ProblemCode::AgentNotFound, format!("there is no agent named {name:?}"));
    found.map(|_| ()).ok_or_else(missing)
}

/// Takes how the run ends without a reader.
fn take_grace(mut query: QueryParameters) -> Result<Option<ReaderGrace>, Problem> {
    let on_disconnect = match query.text("on_disconnect")?.as_deref() {
        None | Some("stop") => OnDisconnect::Stop,
        Some("cancel") => OnDisconnect::Cancel,
        Some("continue") => OnDisconnect::Continue,
        Some(_) => return Err(invalid("on_disconnect", "none of `stop`, `cancel` and `continue`")),
    };
    // Other parameters are the page's own, like unknown fields of the body.
    let grace = query.number::<u32>("grace_seconds")?.unwrap_or(GRACE);
    if !(1..=ReaderGrace::MAX_SECONDS).contains(&grace) {
        let words = format!("not between 1 and {}", ReaderGrace::MAX_SECONDS);
        return Err(invalid("grace_seconds", words));
    }
    Ok(ReaderGrace::new(on_disconnect, grace))
}
