//! `GET /v1/runs` and the routes below it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::guards::within;
use crate::http::in_flight::{SMALL, reading, respond_with};
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{ListPage, Paging, StepIndex, first_index};
use crate::http::parameters::{PathParameters, QueryParameters, invalid, parse_number};
use crate::http::problem::Problem;
use crate::run::read::{absent_run, run_list, run_wait, step_page, steps_size};
use agent::record::{RunRecord, RunSummary, RunSummaryView, RunView, StepRecord, ThreadName};
use store::TimeRange;
use store::runs::{RunFilter, StepPage};
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::json::{json_length, weight};
use values::model_ref::ModelRef;

/// The longest wait for a run.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// A page of runs.
type Runs = ListPage<RunSummaryView>;
/// A page of steps.
type Steps = ListPage<StepRecord>;

/// Some steps of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct StepList {
    #[serde(flatten)]
    #[schema(value_type = Steps)]
    page: ListPage<StepRecord>,
    /// The index of the first of them among all completed steps, from 0.
    from: u64,
    /// The number of completed steps.
    total: u64,
}

/// Lists runs, live and ended, newest first.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(
    ("status" = Option<String>, Query, pattern = "^(queued|running|waiting|answered|completed|stopped|failed|cancelled)(,(queued|running|waiting|answered|completed|stopped|failed|cancelled))*$", description = "Only of one of these statuses, with commas between them"),
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("model" = Option<ModelRef>, Query, description = "Only with this model, as PROVIDER/MODEL, as the one that is asked first"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("base_session_id" = Option<uuid::Uuid>, Query, description = "Only from this session"),
    ("thread" = Option<ThreadName>, Query, description = "Only on this thread"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of runs", body = Runs),
))]
pub(in crate::http) async fn list_runs(call: Call, mut query: QueryParameters) -> Result<Json<Runs>, Problem> {
    let filter = RunFilter {
        statuses: query.parsed_list("status")?,
        agent: query.text("agent")?,
        model: query.parsed("model")?,
        metadata: take_metadata(&mut query)?,
        base_session_id: query.id("base_session_id")?,
        thread: query.parsed("thread")?,
        created: TimeRange {
            from: query.time("created_from")?,
            until: query.time("created_until")?,
        },
    };
    let page = Paging::<RunId>::take(query)?;
    let list = run_list(&call.api.runs, &call.tenant, &filter, page.one_more()).await?;
    let key = |run: &RunSummary| run.run_id;
    Ok(Json(ListPage::new(list, page.limit, key, RunSummaryView::from)))
}

/// Shows a run, also while it works. With `wait` it is shown as soon as its status changes, if that
/// happens in time.
#[utoipa::path(get, path = "/v1/runs/{run_id}", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("wait" = Option<String>, Query, pattern = "^((60|[1-5]?[0-9])s?|1m|[1-5]?[0-9]{1,4}ms)$", description = "How long to wait for a change of the status: seconds, or a duration such as `1m`; up to 60 seconds, by default 0"),
), responses(
    (status = 200, description = "The run", body = RunView),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound, ProblemCode::TooManyReaders]))))]
pub(in crate::http) async fn get_run(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let wait = take_wait(&mut query)?;
    query.finish()?;
    let run_id = path.id("run_id")?;
    let _reader = (!wait.is_zero())
        .then(|| call.api.take_reader(&call.tenant))
        .transpose()?;
    let run = read(&call, run_id, wait).await?;
    show(&call, run).await
}

async fn read(call: &Call, run_id: RunId, wait: Duration) -> Result<Arc<RunRecord>, Problem> {
    let reading = run_wait(&call.api.runs, &call.tenant, run_id, wait);
    let run = within(wait + call.api.limits.request_timeout, reading).await??;
    found(call, run_id, run).await
}

/// Responds with a run. A large run may be delayed, but is never refused.
pub(super) async fn show(call: &Call, run: Arc<RunRecord>) -> Result<Response, Problem> {
    let words = weight(&run);
    let counted = Arc::clone(&run);
    let bytes = by_size(&call.tenant, words as u64, move || cost(&counted)).await;
    let (run, room) = if let Some(room) = call.api.in_flight.try_take(&call.tenant, bytes) {
        (run, room)
    } else {
        // A request that waits for room holds nothing else.
        let run_id = run.summary.run_id;
        drop(run);
        let room = call.api.in_flight.take(&call.tenant, bytes).await;
        (Box::pin(read(call, run_id, Duration::ZERO)).await?, room)
    };
    let view = move || RunView::from(Arc::unwrap_or_clone(run));
    let view = by_size(&call.tenant, words as u64, view).await;
    respond_with(room, view).await
}

/// Estimates the memory of a response with a run: twice its texts, and their JSON. Zero for a small
/// run.
fn cost(run: &RunRecord) -> usize {
    let messages = json_length(&run.input) + json_length(&run.output);
    let bytes = 2 * messages + json_length(&run.value) + 2 * json_length(&run.open_calls);
    if bytes <= SMALL { 0 } else { 2 * bytes }
}

/// Lists the completed steps of a run in their order, with their messages, also while it works.
#[utoipa::path(get, path = "/v1/runs/{run_id}/steps", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("from" = Option<u32>, Query, description = "The index of the first step, from 0; not together with `cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, by default as many as 1 MiB holds"),
    ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of steps", body = StepList),
), extensions(("x-problems" = json!([ProblemCode::RunNotFound]))))]
pub(in crate::http) async fn list_steps(
    call: Call,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let from = query.number::<u32>("from")?;
    let Paging { after, limit } = Paging::<StepIndex>::take_with(query, u32::MAX)?;
    let first = first_index(after.map(|StepIndex(index)| index), from)?;
    let run_id = path.id("run_id")?;
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    // One step more shows that another page follows.
    let indexes = first..first.saturating_add(u64::from(limit) + 1);
    let bytes = steps_size(runs, tenant, run_id, indexes.clone()).await?;
    let room = call.api.in_flight.take_soon(tenant, reading(bytes)).await?;
    let read = step_page(runs, tenant, run_id, indexes).await?;
    let StepPage { steps, total } = found(&call, run_id, read).await?;
    let from = first.min(total);
    let rows = (from + 1..).zip(steps).collect();
    let page = ListPage::new(rows, limit, |(next, _)| StepIndex(*next), |(_, step)| step);
    respond_with(room, StepList { page, from, total }).await
}

/// Takes the parameter `wait`.
fn take_wait(query: &mut QueryParameters) -> Result<Duration, Problem> {
    let Some(text) = query.text("wait")? else {
        return Ok(Duration::ZERO);
    };
    let seconds = parse_number(&text).map(Duration::from_secs);
    let wait = seconds.or_else(|| humantime::parse_duration(&text).ok());
    wait.filter(|wait| *wait <= MAX_WAIT)
        .ok_or_else(|| invalid("wait", "not a time from 0 to 60 seconds, such as 30 or 30s"))
}

/// Returns the run, or the problem of an unknown id.
pub(super) async fn found<T>(call: &Call, run_id: RunId, value: Option<T>) -> Result<T, Problem> {
    match value {
        Some(value) => Ok(value),
        None => Err(absent_run(&call.api.runs, &call.tenant, run_id).await.into()),
    }
}
