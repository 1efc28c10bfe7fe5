//! Runs as tasks (SEP-2663). The id of a task is the id of its first run.
//!
//! A task that waits for input has ended its run. The record of that run names the run that answers
//! it, so every replica finds it, also after a restart. A run that fails gives the calls back, and
//! is found by the name of the task in its metadata.

use std::sync::Arc;

use rmcp::model::{CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskPayload, TaskStatus, UpdateTaskParams};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::errors::{error_of, invalid};
use super::outcome::{result_of, tool_error};
use super::questions;
use super::server::McpServer;
use super::start::{answering, start};
use crate::http::checks::TASK_METADATA as TASK;
use crate::http::problem::Problem;
use crate::run::control_run;
use crate::run::read::{run_list, run_lookup};
use agent::record::{RunControl, RunMode, RunRecord, RunStatus, RunSummary};
use store::Page;
use store::runs::RunFilter;
use values::ids::RunId;
use values::json::{Object, Value};
use values::session::Setting;

/// The most runs of a task.
const MAX_RUNS: usize = 256;
/// How often a client may poll, in milliseconds.
const POLL_INTERVAL_MS: u64 = 1_000;

/// Makes the response to a call whose run is in the queue.
pub(super) fn created(run: &Arc<RunRecord>) -> CreateTaskResult {
    let run = &run.summary;
    CreateTaskResult::new(task(run.run_id, run, run, TaskStatus::Working))
}

/// Reads a task.
pub(super) async fn get(
    server: &McpServer,
    task_id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<GetTaskResult, ErrorData> {
    let (first, run) = read(server, task_id).await?;
    let payload = match run.summary.status {
        RunStatus::Queued | RunStatus::Running => TaskPayload::Working,
        RunStatus::Cancelled => TaskPayload::Cancelled,
        RunStatus::Waiting => waiting(server, &run, context).await?,
        RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed | RunStatus::Answered => {
            completed(&result_of(server, &run).await)?
        }
    };
    let task = task(first.run_id, &first, &run.summary, payload.status());
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Answers the questions of a task. Responses to a task that asks nothing are ignored.
pub(super) async fn update(server: &McpServer, request: UpdateTaskParams) -> Result<(), ErrorData> {
    let (first, run) = read(server, &request.task_id).await?;
    if run.summary.status != RunStatus::Waiting {
        return Ok(());
    }
    let now = server.call.api.runs.clock.now();
    if questions::open_calls(&run, now).next().is_none() {
        return Ok(());
    }
    let Some(answers) = questions::answers(server, &run, request.input_responses, now).await? else {
        return Err(invalid("answer all inputRequests of the task in one request"));
    };
    let mut wanted = answering(server, &run, answers, RunMode::Async)?;
    wanted.metadata = Setting::Set(Object::from_iter([(TASK.to_owned(), json!(first.run_id))]));
    match start(server, wanted).await? {
        Ok(handle) => drop(handle.detach()),
        Err(problem) => return Err(error_of(&problem)),
    }
    Ok(())
}

/// Cancels the run at work. A run that has ended stays as it is.
pub(super) async fn cancel(server: &McpServer, task_id: &str) -> Result<(), ErrorData> {
    let (_, run) = read(server, task_id).await?;
    if run.summary.status.is_terminal() {
        return Ok(());
    }
    let call = &server.call;
    let (runs, run_id) = (&call.api.runs, run.summary.run_id);
    let cancelled = control_run(runs, &call.tenant, run_id, RunControl::Cancel).await;
    cancelled.map(drop).map_err(|refusal| error_of(&refusal.into()))
}

/// Returns the first and the last run of a task.
async fn read(server: &McpServer, task_id: &str) -> Result<(RunSummary, Arc<RunRecord>), ErrorData> {
    let unknown = || invalid("there is no such task");
    let first: RunId = task_id.parse().map_err(|_| unknown())?;
    let mut run = lookup(server, first).await?.ok_or_else(unknown)?;
    let summary = run.summary.clone();
    for _ in 0..MAX_RUNS {
        let next = match run.summary.status {
            RunStatus::Answered => run.summary.answer_run_id,
            RunStatus::Waiting => next_run(server, first, &run.summary).await?,
            _ => None,
        };
        let Some(next) = next else { break };
        run = lookup(server, next).await?.ok_or_else(unknown)?;
    }
    Ok((summary, Arc::new(run)))
}

async fn lookup(server: &McpServer, run_id: RunId) -> Result<Option<RunRecord>, ErrorData> {
    let call = &server.call;
    let found = run_lookup(&call.api.runs, &call.tenant, run_id).await;
    Ok(found.map_err(Problem::from)?)
}

/// Returns the run of the task that was to answer a waiting run, and has failed.
async fn next_run(server: &McpServer, task: RunId, waiting: &RunSummary) -> Result<Option<RunId>, ErrorData> {
    let filter = RunFilter {
        base_session_id: Some(waiting.session_id),
        metadata: Object::from_iter([(TASK.to_owned(), json!(task))]),
        ..RunFilter::default()
    };
    let page = Page { before: None, limit: 1 };
    let call = &server.call;
    let found = run_list(&call.api.runs, &call.tenant, &filter, page).await;
    Ok(found.map_err(Problem::from)?.first().map(|run| run.run_id))
}

async fn waiting(
    server: &McpServer,
    run: &Arc<RunRecord>,
    context: &RequestContext<RoleServer>,
) -> Result<TaskPayload, ErrorData> {
    let now = server.call.api.runs.clock.now();
    if questions::open_calls(run, now).next().is_none() {
        return completed(&tool_error("nobody has answered the calls of the run in time"));
    }
    if questions::can_ask(context.client_capabilities().as_ref())
        && let Some(input_requests) = questions::requests(server, run, now).await?
    {
        return Ok(TaskPayload::InputRequired { input_requests });
    }
    completed(&result_of(server, run).await)
}

fn completed(result: &rmcp::model::CallToolResult) -> Result<TaskPayload, ErrorData> {
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => Ok(TaskPayload::Completed { result }),
        Ok(_) => Err(error_of(&Problem::internal("the result of a tool is no object"))),
        Err(error) => Err(error_of(&Problem::internal(error))),
    }
}

fn task(task_id: RunId, first: &RunSummary, last: &RunSummary, status: TaskStatus) -> Task {
    let updated = last.completed_at.or(last.started_at).unwrap_or(last.created_at);
    let text = |time: values::clock::Timestamp| time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    Task::new(task_id.to_string(), status, text(first.created_at), text(updated))
        .with_poll_interval_ms(POLL_INTERVAL_MS)
}
