//! `POST /v1/ag-ui/{agent}`.

use axum::http::StatusCode;
use axum::response::Response;
use tracing::Span;
use tracing::field::display;

use super::body::RunAgentInput;
use super::hydration::hydrate;
use super::run_request::{Prepared, prepare, state_changes};
use super::stream::{page_of, refuse};
use crate::http::auth::Call;
use crate::http::chat_start::{Envelope, Way, check_agent, make_way, start, take_grace};
use crate::http::chat_thread::ChatThread;
use crate::http::codes::ProblemCode;
use crate::http::face_stream;
use crate::http::faces::ag_ui::{EventWriter, RunInput, Variables};
use crate::http::idempotency::{KeyedBody, mark_replay, named_by_body};
use crate::http::observe::StartedRun;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::START_PROBLEMS;
use crate::run::{OnDisconnect, RequestKey, RunHandle};
use agent::record::RunControl;
use tasks::off_thread::by_size;
use values::json::{Object, Value};
use values::session::change_values;

/// Runs an agent for a page, as AG-UI 1.0 asks for it.
///
/// `threadId` names the thread. Without messages and `resume`, the response has what is there, and
/// follows the run at work. A message on a busy thread interrupts that run. A request whose body is
/// sound and which makes no sense ends with `RUN_ERROR`.
#[utoipa::path(post, path = "/v1/ag-ui/{agent}", tag = "ag_ui", params(
    ("Idempotency-Key" = Option<String>, Header),
    ("agent" = String, Path, description = "The name of the agent"),
    ("on_disconnect" = Option<OnDisconnect>, Query, description = "The effect of the loss of all readers, by default `stop`"),
    ("grace_seconds" = Option<u32>, Query, minimum = 1, maximum = 3600, description = "How long a run goes on without any reader, by default 15"),
), request_body(content = RunAgentInput, description = "`RunAgentInput`"), responses(
    (status = 200, description = "The events of the run", content((String = "text/event-stream")),
        headers(("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(START_PROBLEMS))))]
pub(in crate::http) async fn run_ag_ui(
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
    let name = agent.clone();
    let read = by_size(&call.tenant, bytes, move || read(&name, body)).await;
    let (input, own_key) = read?;
    let thread = ChatThread::new(&call, input.thread.clone());
    if input.is_empty() {
        check_agent(&call, &agent).await?;
        return Box::pin(hydrate(&call, &thread, &input)).await;
    }
    let (key, known) = match key {
        Some(key) => {
            let known = thread.known_run(&key).await?;
            (Some(key), known)
        }
        None => known_by_id(&thread, own_key).await?,
    };
    if let Some(handle) = known {
        return Box::pin(replayed(&thread, handle, &input)).await;
    }
    check_agent(&call, &agent).await?;
    let mut prepared = match Box::pin(prepare(&thread, &agent, &input)).await {
        Ok(prepared) => prepared,
        Err(problem) => return ended(&input, problem),
    };
    if prepared.interrupts {
        match make_way(&thread, key.as_ref(), RunControl::Stop).await? {
            Way::Free => (),
            Way::Cleared => match Box::pin(prepare(&thread, &agent, &input)).await {
                Ok(again) => prepared = again,
                Err(problem) => return ended(&input, problem),
            },
            Way::Known(handle) => return Box::pin(replayed(&thread, handle, &input)).await,
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
    let Prepared { request, is_shown, .. } = prepared;
    let changes = request.variables.clone();
    match start(&call, envelope, request).await {
        Ok(handle) => Box::pin(followed(&thread, handle, &input, (changes, is_shown))).await,
        Err(refusal) => ended(&input, call.problem(refusal)),
    }
}

/// Follows the run of an earlier request that was the same.
async fn replayed(thread: &ChatThread<'_>, handle: RunHandle, input: &RunInput) -> Result<Response, Problem> {
    let base = handle.summary().base_session_id;
    let changes = state_changes(thread, input, (base, base), false).await?;
    let is_shown = base.is_none() || input.shows_agent();
    followed(thread, handle, input, (changes, is_shown)).await
}

/// Reads a body. Also returns the key that it has by itself: a page names each of its runs.
fn read(agent: &str, body: Object) -> Result<(RunInput, RequestKey), Problem> {
    let body = Value::Object(body);
    let [thread, run] = ["threadId", "runId"].map(|field| body[field].as_str().unwrap_or_default());
    let key = named_by_body("ag-ui", [agent, thread, run], &body);
    let Value::Object(body) = body else { unreachable!() };
    Ok((RunInput::read(body)?, key))
}

/// Finds the run of an earlier request with the same name. Some pages name all of their runs alike,
/// so another request of that name has no key.
async fn known_by_id(
    thread: &ChatThread<'_>,
    key: RequestKey,
) -> Result<(Option<RequestKey>, Option<RunHandle>), Problem> {
    match thread.known_run(&key).await {
        Ok(known) => Ok((Some(key), known)),
        Err(problem) if problem.code() == ProblemCode::IdempotencyKeyReused => Ok((None, None)),
        Err(problem) => Err(problem),
    }
}

/// Ends a run that does not begin. A page reads what is wrong with its request as the error of the
/// run, and everything else as that of the connection.
fn ended(input: &RunInput, problem: Problem) -> Result<Response, Problem> {
    match problem.code().status() {
        StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
            Ok(refuse(input, &problem))
        }
        _ => Err(problem),
    }
}

/// Follows a run, which has begun with `changes` of its base's variables. `is_shown` is whether the
/// page has sent all that it shows.
async fn followed(
    thread: &ChatThread<'_>,
    handle: RunHandle,
    input: &RunInput,
    (changes, is_shown): (Variables, bool),
) -> Result<Response, Problem> {
    let call = thread.call;
    let (run_id, is_replay) = (handle.run_id, handle.is_replay);
    Span::current().record("run_id", display(run_id));
    let counted = is_replay.then(|| call.api.take_reader(&call.tenant)).transpose()?;
    let base = handle.summary().base_session_id.filter(|_| call.may_read());
    let mut variables = thread.variables(base).await?;
    change_values(&mut variables, changes);
    let (caller, events) = handle.into_events();
    let mut page = page_of(input);
    if is_shown {
        page.messages = Some(input.raw_messages.clone());
    }
    let writer = EventWriter::new(page, variables);
    let mut response = face_stream::respond(call.clone(), None, events, Some(caller), counted, writer);
    response.extensions_mut().insert(StartedRun(run_id));
    mark_replay(&mut response, is_replay);
    Ok(response)
}
