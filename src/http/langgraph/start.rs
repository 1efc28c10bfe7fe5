//! Starts runs.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tracing::Span;
use tracing::field::display;

use super::assistants::{Assistant, find};
use super::body::LangGraphObject;
use super::run_request::{mode_of, prepare};
use super::runs::RunView;
use super::states::head_of;
use super::stream::{RunReader, end_of, name_run, respond, respond_end, write_values};
use super::thread_changes::{create, merge_metadata, new_name};
use super::thread_path::known_thread;
use crate::http::auth::Call;
use crate::http::chat_history::ChatOutline;
use crate::http::chat_start::{Envelope, Way, make_way, start};
use crate::http::chat_thread::ChatThread;
use crate::http::face_stream;
use crate::http::faces::langgraph::{RunBody, Values};
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::in_flight::{held, respond_with};
use crate::http::observe::StartedRun;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::refusal::Refusal;
use crate::run::{RequestKey, RequestOrigin, RunHandle, RunRequest};
use agent::record::ThreadName;
use store::keys::Scope;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::json::Object;

/// Starts a run on a thread, and streams its events.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/runs/stream", tag = "langgraph",
    params(("thread_id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The events", content((String = "text/event-stream"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn stream_langgraph_run(
    call: Call,
    path: PathParameters,
    body: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    let target = Target::of_thread(thread_of(&call, &path, &body).await?);
    Box::pin(streamed(&call, target, body, run)).await
}

/// Starts a run without a thread, and streams its events.
#[utoipa::path(post, path = "/v1/langgraph/runs/stream", tag = "langgraph",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The events", content((String = "text/event-stream"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn stream_stateless_run(call: Call, body: KeyedBody<Object>) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    Box::pin(streamed(&call, Target::without_thread(&call)?, body, run)).await
}

/// Starts a run on a thread, and waits for its state.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/runs/wait", tag = "langgraph",
    params(("thread_id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The values, or `__error__`", body = LangGraphObject),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn wait_for_langgraph_run(
    call: Call,
    path: PathParameters,
    body: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    let target = Target::of_thread(thread_of(&call, &path, &body).await?);
    Box::pin(waited(&call, target, body, run)).await
}

/// Starts a run without a thread, and waits for its state.
#[utoipa::path(post, path = "/v1/langgraph/runs/wait", tag = "langgraph",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The values, or `__error__`", body = LangGraphObject),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn wait_for_stateless_run(call: Call, body: KeyedBody<Object>) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    Box::pin(waited(&call, Target::without_thread(&call)?, body, run)).await
}

/// Starts a run on a thread, which goes on in the background.
#[utoipa::path(post, path = "/v1/langgraph/threads/{thread_id}/runs", tag = "langgraph",
    params(("thread_id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The run", body = LangGraphObject),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn create_langgraph_run(
    call: Call,
    path: PathParameters,
    body: KeyedBody<Object>,
) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    let target = Target::of_thread(thread_of(&call, &path, &body).await?);
    Box::pin(begun(&call, target, body, run)).await
}

/// Starts a run without a thread, which goes on in the background.
#[utoipa::path(post, path = "/v1/langgraph/runs", tag = "langgraph",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = LangGraphObject, description = "The request, as LangGraph has it"), responses(
    (status = 200, description = "The run", body = LangGraphObject),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn create_stateless_run(call: Call, body: KeyedBody<Object>) -> Result<Response, Problem> {
    let (body, run) = Sent::read(&call, body).await?;
    Box::pin(begun(&call, Target::without_thread(&call)?, body, run)).await
}

/// The parts of a request that its body does not have.
struct Sent {
    key: Option<RequestKey>,
    origin: Option<RequestOrigin>,
}

impl Sent {
    /// Reads a body. A state has all messages of its thread, so a caller must be able to read them.
    async fn read(call: &Call, body: KeyedBody<Object>) -> Result<(RunBody, Self), Problem> {
        call.check_scope(Scope::SessionsRead)?;
        let KeyedBody {
            key,
            body,
            bytes,
            origin,
        } = body;
        let body = by_size(&call.tenant, bytes, move || RunBody::read(body)).await?;
        Ok((body, Self { key, origin }))
    }
}

/// Where a run begins.
struct Target<'a> {
    /// The thread; for a run without one, a name that nothing has.
    thread: ChatThread<'a>,
    is_detached: bool,
}

impl<'a> Target<'a> {
    fn of_thread(thread: ChatThread<'a>) -> Self {
        let is_detached = false;
        Self { thread, is_detached }
    }

    fn without_thread(call: &'a Call) -> Result<Self, Problem> {
        let thread = ChatThread::new(call, new_name(call)?);
        Ok(Self {
            thread,
            is_detached: true,
        })
    }

    fn name(&self) -> Option<&ThreadName> {
        (!self.is_detached).then_some(&self.thread.name)
    }
}

/// Returns the thread of a path, which is created if the request says so.
async fn thread_of<'a>(call: &'a Call, path: &PathParameters, body: &RunBody) -> Result<ChatThread<'a>, Problem> {
    if body.creates_thread
        && let Some(thread) = ChatThread::in_path(call, path, "thread_id")
    {
        return Ok(thread);
    }
    Ok(known_thread(call, path).await?.0)
}

async fn streamed(call: &Call, target: Target<'_>, body: RunBody, sent: Sent) -> Result<Response, Problem> {
    let modes = body.modes;
    let Some(handle) = Box::pin(started(call, &target, body, sent, false)).await? else {
        return Box::pin(respond_waiting(&target.thread)).await;
    };
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    let counted = is_replay.then(|| call.api.take_reader(&call.tenant)).transpose()?;
    let (caller, events) = handle.into_events();
    let reader = RunReader {
        events,
        caller: Some(caller),
        counted,
        modes,
        after: None,
    };
    let mut response = respond(call.clone(), target.name(), reader)?;
    response.extensions_mut().insert(StartedRun(run_id));
    mark_replay(&mut response, is_replay);
    Ok(response)
}

async fn waited(call: &Call, target: Target<'_>, body: RunBody, sent: Sent) -> Result<Response, Problem> {
    let Some(handle) = Box::pin(started(call, &target, body, sent, false)).await? else {
        let (share, values) = waiting_values(&target.thread).await?;
        return respond_with(share, values).await;
    };
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    let _counted = is_replay.then(|| call.api.take_reader(&call.tenant)).transpose()?;
    let (caller, events) = handle.into_events();
    let mut response = respond_end(end_of(call, events, Some(&caller)).await?).await?;
    name_run(&mut response, target.name(), run_id)?;
    mark_replay(&mut response, is_replay);
    Ok(response)
}

async fn begun(call: &Call, target: Target<'_>, body: RunBody, sent: Sent) -> Result<Response, Problem> {
    let handle = Box::pin(started(call, &target, body, sent, true)).await?;
    let handle = handle.ok_or_else(|| Problem::internal("a run in the background has not begun"))?;
    let view = RunView::new(&call.tenant, handle.summary());
    let mut response = Json(view).into_response();
    name_run(&mut response, target.name(), handle.run_id)?;
    Ok(response)
}

/// Starts a run; `None` if its thread waits for other answers.
async fn started(
    call: &Call,
    Target { thread, is_detached }: &Target<'_>,
    body: RunBody,
    sent: Sent,
    is_background: bool,
) -> Result<Option<RunHandle>, Problem> {
    if let Some(key) = &sent.key
        && let Some(handle) = thread.known_run(key).await?
    {
        return Ok(Some(handle));
    }
    let assistant = find(call, &body.assistant).await?;
    // Refuses what makes no sense before it interrupts anything.
    let Some(mut request) = Box::pin(prepare(thread, &body, is_background)).await? else {
        return Ok(None);
    };
    if let Some(control) = body.multitask.control() {
        match make_way(thread, sent.key.as_ref(), control).await? {
            Way::Free => (),
            Way::Cleared => match Box::pin(prepare(thread, &body, is_background)).await? {
                Some(again) => request = again,
                None => return Ok(None),
            },
            Way::Known(handle) => return Ok(Some(handle)),
        }
    }
    if !is_detached {
        mark_thread(call, &thread.name, &assistant).await?;
    }
    let envelope = Envelope {
        agent: assistant.graph_id,
        thread: (!is_detached).then(|| thread.name.clone()),
        key: sent.key,
        on_disconnect: body.on_disconnect,
        reader_grace: None,
        origin: sent.origin,
    };
    let request = RunRequest {
        mode: mode_of(is_background),
        thread_from: request.thread_from.filter(|_| !is_detached),
        ..request
    };
    let handle = start(call, envelope, request)
        .await
        .map_err(|refusal| call.problem(refusal))?;
    Span::current().record("run_id", display(handle.run_id));
    Ok(Some(handle))
}

/// Responds to a request whose answers are retained: the thread waits for others.
async fn respond_waiting(thread: &ChatThread<'_>) -> Result<Response, Problem> {
    let (share, values) = waiting_values(thread).await?;
    let mut frames = Vec::new();
    write_values(&mut frames, &values);
    Ok(face_stream::respond_with(held(frames.into(), share)))
}

async fn waiting_values(thread: &ChatThread<'_>) -> Result<(Share, Values), Problem> {
    let outline = ChatOutline::read(thread).await?;
    let (share, head) = head_of(thread, outline).await?;
    let values = Values {
        interrupts: head.open.map_or_else(Vec::new, |step| step.interrupts()),
        messages: head.messages,
    };
    Ok((share, values))
}

/// Names the agent in the metadata of a thread, by which clients find their threads. A thread that
/// does not exist is created.
async fn mark_thread(call: &Call, name: &ThreadName, assistant: &Assistant) -> Result<(), Problem> {
    let marks = Object::from_iter([
        ("graph_id".to_owned(), json!(assistant.graph_id)),
        ("assistant_id".to_owned(), json!(assistant.assistant_id)),
    ]);
    let known = call.api.runs.store.thread_lookup(&call.tenant, name).await?;
    match known {
        Some(thread) if marks.iter().all(|(key, value)| thread.metadata.get(key) == Some(value)) => Ok(()),
        Some(_) => merge_metadata(call, name, marks).await.map(drop),
        None => match create(call, name.clone(), marks).await {
            Ok(_) | Err(Refusal::ThreadExists { .. }) => Ok(()),
            Err(refusal) => Err(call.problem(refusal)),
        },
    }
}
