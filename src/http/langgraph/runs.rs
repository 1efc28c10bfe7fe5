//! Runs of threads.

use axum::Json;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;

use super::assistants::id_of;
use super::body::LangGraphObject;
use super::stream::{RunReader, end_of, last_event, respond, respond_end};
use super::thread_path::known_thread;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::langgraph::Modes;
use crate::http::guards::within;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::run::read::{Following, follow, run_list, run_lookup};
use agent::record::{RunRecord, RunStatus, RunSummary};
use store::Page;
use store::runs::RunFilter;
use values::clock::Timestamp;
use values::ids::RunId;
use values::json::Object;
use values::tenant::TenantId;

/// The most runs of a list, with those before it.
const MAX_LISTED: usize = 1_000;

/// A run.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RunView {
    run_id: RunId,
    thread_id: String,
    assistant_id: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    status: &'static str,
    metadata: Object,
    kwargs: Object,
    multitask_strategy: &'static str,
}

impl RunView {
    pub(super) fn new(tenant: &TenantId, run: &RunSummary) -> Self {
        Self {
            run_id: run.run_id,
            thread_id: run.thread.as_ref().map_or_else(String::new, ToString::to_string),
            assistant_id: id_of(tenant, &run.agent),
            created_at: run.created_at,
            updated_at: run.completed_at.or(run.started_at).unwrap_or(run.created_at),
            status: status_of(run.status),
            metadata: run.metadata.clone(),
            kwargs: Object::new(),
            multitask_strategy: "enqueue",
        }
    }
}

fn status_of(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "pending",
        RunStatus::Running => "running",
        RunStatus::Failed => "error",
        RunStatus::Stopped | RunStatus::Cancelled => "interrupted",
        _ => "success",
    }
}

/// Finds the run of a path, which belongs to the thread of the path.
pub(super) async fn run_of(call: &Call, path: &PathParameters) -> Result<RunRecord, Problem> {
    let name = path.text("run_id");
    let found = match name.parse() {
        Ok(run_id) => run_lookup(&call.api.runs, &call.tenant, run_id).await?,
        Err(_) => None,
    };
    let is_of_thread = |run: &RunRecord| {
        let thread = run.summary.thread.as_ref();
        thread.is_some_and(|thread| thread.as_str() == path.text("thread_id"))
    };
    found.filter(is_of_thread).ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        Problem::new(ProblemCode::RunNotFound, format!("the thread has no run {shown:?}"))
    })
}

/// Lists the runs of a thread, newest first.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/runs", tag = "langgraph",
    params(("thread_id" = String, Path)), responses(
    (status = 200, description = "The runs", body = Vec<LangGraphObject>),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn list_langgraph_runs(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Json<Vec<RunView>>, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    let limit = query.number::<usize>("limit")?.unwrap_or(10);
    let offset = query.number::<usize>("offset")?.unwrap_or_default();
    let status = query.text("status")?;
    let filter = RunFilter {
        thread: Some(thread.name.clone()),
        ..RunFilter::default()
    };
    let most = offset.saturating_add(limit).min(MAX_LISTED);
    let page = Page {
        before: None,
        limit: u32::try_from(if status.is_some() { MAX_LISTED } else { most }).unwrap_or(u32::MAX),
    };
    let runs = run_list(&call.api.runs, &call.tenant, &filter, page).await?;
    let views = runs.iter().map(|run| RunView::new(&call.tenant, run));
    let views = views.filter(|view| status.as_ref().is_none_or(|status| view.status == status));
    Ok(Json(views.skip(offset).take(limit).collect()))
}

/// Returns a run.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/runs/{run_id}", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The run", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound]))))]
pub(in crate::http) async fn get_langgraph_run(call: Call, path: PathParameters) -> Result<Json<RunView>, Problem> {
    let run = run_of(&call, &path).await?;
    Ok(Json(RunView::new(&call.tenant, &run.summary)))
}

/// Waits for the end of a run.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/runs/{run_id}/join", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The values, or `__error__`", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn join_langgraph_run(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let run = run_of(&call, &path).await?;
    let _counted = call.api.take_reader(&call.tenant)?;
    let following = following(&call, run.summary.run_id).await?;
    let end = Box::pin(end_of(&call, following.events, None)).await?;
    respond_end(end).await
}

/// Follows a run: from its start, or after `Last-Event-ID`.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}/runs/{run_id}/stream", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path)), responses(
    (status = 200, description = "The events", content((String = "text/event-stream"))),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn follow_langgraph_run(
    call: Call,
    path: PathParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = run_of(&call, &path).await?;
    let counted = call.api.take_reader(&call.tenant)?;
    let following = following(&call, run.summary.run_id).await?;
    let reader = RunReader {
        events: following.events,
        caller: None,
        counted: Some(counted),
        modes: Modes::ALL,
        after: last_event(&headers),
    };
    respond(call, run.summary.thread.as_ref(), reader)
}

async fn following(call: &Call, run_id: RunId) -> Result<Following, Problem> {
    let following = follow(&call.api.runs, &call.tenant, run_id, 0);
    let following = within(call.api.limits.request_timeout, following).await??;
    following.ok_or_else(|| Problem::new(ProblemCode::RunNotFound, "the run is gone"))
}
