//! `tools/call`: runs an agent as `POST /v1/runs` does, and answers the calls of a run that waits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, InputRequiredResult, InputResponses, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use tokio::time::timeout;

use super::errors::invalid;
use super::outcome::{refusal, result_of, tool_error};
use super::progress::report;
use super::request_state::{self, Binding};
use super::run_request::new_run;
use super::server::McpServer;
use super::start::{answering, start};
use super::trace::CallTrace;
use super::{questions, tasks};
use crate::http::problem::Problem;
use crate::run::read::{follow, run_lookup};
use crate::run::{RunHandle, RunRequest};
use agent::record::{RunMode, RunRecord, RunStatus};
use store::keys::Scope;
use values::ids::{RunId, SessionId};
use values::json::{Object, Value};

/// The longest name that an error repeats, in bytes.
const MAX_NAME: usize = 128;
/// How long the last notifications may take after the end of the run.
const LAST_PROGRESS: Duration = Duration::from_secs(1);

/// The arguments of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    input: String,
    session: Option<String>,
}

/// Calls a tool.
pub(super) async fn call_tool(
    server: &McpServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let call = &server.call;
    let agent = call.api.runs.agents.lookup(&call.tenant, &request.name).await;
    if agent.map_err(Problem::from)?.is_none() {
        let name: String = request.name.chars().take(MAX_NAME).collect();
        return Err(invalid(format!("Unknown tool: {name}")));
    }
    let (mut server, tool) = (server.clone(), request.name.clone());
    let mut trace = CallTrace::begin(&mut server, &tool, context);
    let response = call_agent(&server, request, context).await;
    if let Some(trace) = &mut trace {
        trace.responded(&response);
    }
    response
}

/// Calls a tool that exists.
async fn call_agent(
    server: &McpServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let call = &server.call;
    let (input, session) = match read_arguments(request.arguments.as_ref()) {
        Ok(arguments) => arguments,
        Err(words) => return Ok(tool_error(words).into()),
    };
    let binding = Binding::new(server, &request.name, request.arguments.as_ref())?;
    match (request.request_state, request.input_responses) {
        (None, Some(_)) => Err(invalid("inputResponses need the requestState of the result that asked")),
        (None, None) if makes_task(server, context) => {
            let wanted = new_run(call, &request.name, input, session, RunMode::Async);
            match start(server, wanted).await? {
                Ok(handle) => Ok(tasks::created(&handle.detach()).into()),
                Err(problem) => Ok(refusal(&problem).into()),
            }
        }
        (None, None) => {
            let wanted = new_run(call, &request.name, input, session, RunMode::Sync);
            perform(server, wanted, &binding, context).await
        }
        (Some(state), responses) => {
            let run_id = request_state::open(server, &binding, &state)?;
            answer(server, run_id, responses.unwrap_or_default(), &binding, context).await
        }
    }
}

/// Answers the open calls of a run, or asks again if some responses are missing.
async fn answer(
    server: &McpServer,
    run_id: RunId,
    responses: InputResponses,
    binding: &Binding,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let call = &server.call;
    let found = run_lookup(&call.api.runs, &call.tenant, run_id).await;
    let run = found
        .map_err(Problem::from)?
        .filter(|run| matches!(run.summary.status, RunStatus::Waiting | RunStatus::Answered));
    let run = run.ok_or_else(|| invalid("the run that asked is gone: call the tool again without requestState"))?;
    let (run, now) = (Arc::new(run), call.api.runs.clock.now());
    match questions::answers(server, &run, responses, now).await? {
        None => respond(server, &run, binding, context).await,
        Some(answers) => {
            let wanted = answering(server, &run, answers, RunMode::Sync)?;
            perform(server, wanted, binding, context).await
        }
    }
}

/// Starts a run, waits for its end and responds.
async fn perform(
    server: &McpServer,
    request: RunRequest,
    binding: &Binding,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let handle = match start(server, request).await? {
        Ok(handle) => handle,
        Err(problem) => return Ok(refusal(&problem).into()),
    };
    let call = &server.call;
    // Callers that repeat a request count as readers of its run, as in `/v1`.
    let is_reader = handle.is_replay && !handle.has_ended();
    let reader = is_reader.then(|| call.api.take_reader(&call.tenant)).transpose();
    let _reader = match reader {
        Ok(reader) => reader,
        Err(problem) => return Ok(refusal(&problem).into()),
    };
    let run = end_of(server, handle, context).await?;
    respond(server, &run, binding, context).await
}

/// Waits for the end of a run, and reports its progress if the client wants to know.
async fn end_of(
    server: &McpServer,
    handle: RunHandle,
    context: &RequestContext<RoleServer>,
) -> Result<Arc<RunRecord>, ErrorData> {
    let (call, run_id) = (&server.call, handle.run_id);
    let mut ending = pin!(handle.result());
    let ended = if let Some(token) = context.meta.get_progress_token() {
        let following = follow(&call.api.runs, &call.tenant, run_id, 0).await;
        let reporting = async {
            if let Ok(Some(following)) = following {
                report(following.events, context.peer.clone(), token).await;
            }
        };
        let mut reporting = pin!(reporting);
        tokio::select! {
            ended = &mut ending => {
                let _ = timeout(LAST_PROGRESS, reporting).await;
                ended
            }
            () = &mut reporting => ending.await,
        }
    } else {
        ending.await
    };
    Ok(ended.map_err(Problem::from)?)
}

/// Makes the result, or the questions of a run that waits.
async fn respond(
    server: &McpServer,
    run: &Arc<RunRecord>,
    binding: &Binding,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let can_ask = is_stateless(context) && questions::can_ask(context.client_capabilities().as_ref());
    if run.summary.status == RunStatus::Waiting && can_ask {
        let now = server.call.api.runs.clock.now();
        if let Some(requests) = questions::requests(server, run, now).await? {
            let state = request_state::seal(server, binding, run)?;
            return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
        }
    }
    Ok(result_of(server, run).await.into())
}

/// Returns whether the client gets a task: it can, and its key may read the end of the run.
fn makes_task(server: &McpServer, context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    capabilities.is_some_and(|capabilities| capabilities.supports_tasks()) && server.may(Scope::SessionsRead)
}

/// Returns whether the request is of a revision without sessions.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn read_arguments(arguments: Option<&Object>) -> Result<(String, Option<SessionId>), String> {
    let arguments = Value::Object(arguments.cloned().unwrap_or_default());
    let Arguments { input, session } =
        serde_json::from_value(arguments).map_err(|error| format!("the arguments do not fit: {error}"))?;
    if input.is_empty() {
        return Err("the arguments do not fit: `input` is empty".to_owned());
    }
    let session = session.map(|session| session.parse::<SessionId>()).transpose();
    let session = session.map_err(|error| format!("the arguments do not fit: `session`: {error}"))?;
    Ok((input, session))
}
