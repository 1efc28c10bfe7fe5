//! `GET /v1/runs` and the routes below it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::guards::within;
use crate::http::in_flight::{SMALL, reading, respond_with};
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{Cursor, ListPage, take_cursor, take_given_limit, take_limit};
use crate::http::parameters::{PathParameters, QueryParameters, invalid, parse_number};
use crate::http::problem::Problem;
use crate::ids::RunId;
use crate::json::json_length;
use crate::message::message_json_weight;
use crate::model_ref::ModelRef;
use crate::off_thread::by_size;
use crate::record::{RunRecord, RunSummaryView, RunView, StepRecord, ThreadName, record_weight};
use crate::store::{Page, RunFilter, TimeRange};
use crate::tenant::TenantId;

/// The longest wait for a run.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// A page of runs.
type Runs = ListPage<RunSummaryView>;
/// A page of steps.
type Steps = ListPage<StepRecord>;

/// Lists runs, live and ended, newest first.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(
    ("status" = Option<crate::record::RunStatus>, Query, description = "Only of this status"),
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("model" = Option<ModelRef>, Query, description = "Only with this model, as PROVIDER/MODEL, as the one that is asked first"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("base_session_id" = Option<uuid::Uuid>, Query, description = "Only from this session"),
    ("thread" = Option<ThreadName>, Query, description = "Only on this thread"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default 50"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of runs", body = Runs),
))]
pub(in crate::http) async fn list_runs(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    mut query: QueryParameters,
) -> Result<Json<Runs>, Problem> {
    let filter = RunFilter {
        status: query.parsed("status")?,
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
    let limit = take_limit(&mut query)?;
    let before = take_cursor(&mut query, |cursor| match cursor {
        Cursor::Run(id) => Some(RunId::from_uuid(id)),
        _ => None,
    })?;
    query.finish()?;
    let runs = api
        .service
        .runs
        .reader
        .run_list(
            &tenant,
            &filter,
            Page {
                before,
                limit: limit + 1,
            },
        )
        .await?;
    Ok(Json(ListPage::new(
        runs,
        limit,
        |run| Cursor::Run(run.run_id.as_uuid()),
        RunSummaryView::from,
    )))
}

/// Shows a run, also while it works. With `wait` it is shown as soon as its status changes, if that
/// happens in time.
#[utoipa::path(get, path = "/v1/runs/{run_id}", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("wait" = Option<String>, Query, pattern = "^((60|[1-5]?[0-9])s?|1m|[1-5]?[0-9]{1,4}ms)$", description = "How long to wait for a change of the status: seconds, or a duration such as `1m`; up to 60 seconds, by default 0"),
), responses(
    (status = 200, description = "The run", body = RunView),
))]
pub(in crate::http) async fn get_run(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let wait = take_wait(&mut query)?;
    query.finish()?;
    let run_id = path.id("run_id")?;
    let _reader = (!wait.is_zero()).then(|| api.take_reader(&tenant)).transpose()?;
    let run = read(&api, &tenant, run_id, wait).await?;
    show(&api, &tenant, run, (StatusCode::OK, HeaderMap::new())).await
}

async fn read(api: &Api, tenant: &TenantId, run_id: RunId, wait: Duration) -> Result<Arc<RunRecord>, Problem> {
    let reading = api.service.runs.reader.run_wait(tenant, run_id, wait);
    let run = within(wait + api.limits.request_timeout, reading).await??;
    found(api, tenant, run_id, run).await
}

/// Responds with a run, which may be large. A large one may be delayed; none is refused.
pub(super) async fn show(
    api: &Api,
    tenant: &TenantId,
    run: Arc<RunRecord>,
    head: (StatusCode, HeaderMap),
) -> Result<Response, Problem> {
    let words = record_weight(&run);
    let counted = Arc::clone(&run);
    let bytes = by_size(tenant, words as u64, move || cost(&counted)).await;
    let (run, room) = if let Some(room) = api.in_flight.try_take(tenant, bytes) {
        (run, room)
    } else {
        // A request that waits for room holds nothing else.
        let run_id = run.summary.run_id;
        drop(run);
        let room = api.in_flight.take(tenant, bytes).await;
        (Box::pin(read(api, tenant, run_id, Duration::ZERO)).await?, room)
    };
    let view = move || RunView::from(Arc::unwrap_or_clone(run));
    let view = by_size(tenant, words as u64, view).await;
    respond_with(room, head, view).await
}

/// Estimates the bytes of a response with a run: its texts twice, and their JSON. Zero for a small
/// one.
fn cost(run: &RunRecord) -> usize {
    let output: usize = run.output.iter().map(|message| message_json_weight(message)).sum();
    let bytes = 2 * output + json_length(&run.value);
    if bytes <= SMALL { 0 } else { 2 * bytes }
}

/// Lists the completed steps of a run in their order, with their messages, also while it works.
#[utoipa::path(get, path = "/v1/runs/{run_id}/steps", tag = "runs", params(
    ("run_id" = uuid::Uuid, Path),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "1 to 200, by default as many as 1 MiB holds"),
    ("cursor" = Option<String>, Query, description = "The `next_cursor` of the page before"),
), responses(
    (status = 200, description = "A page of steps", body = Steps),
))]
pub(in crate::http) async fn list_steps(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    path: PathParameters,
    mut query: QueryParameters,
) -> Result<Response, Problem> {
    let limit = take_given_limit(&mut query)?.unwrap_or(u32::MAX);
    let first = take_cursor(&mut query, |cursor| match cursor {
        Cursor::Step(index) => Some(usize::try_from(index).unwrap_or(usize::MAX)),
        _ => None,
    })?;
    query.finish()?;
    let run_id = path.id("run_id")?;
    let bytes = api.service.runs.reader.steps_size(&tenant, run_id).await?;
    let room = api.in_flight.take_soon(&tenant, reading(bytes)).await?;
    let steps = api.service.runs.reader.step_list(&tenant, run_id).await?;
    let steps = found(&api, &tenant, run_id, steps).await?;
    let rest: Vec<_> = (1..).zip(steps).skip(first.unwrap_or_default()).collect();
    let cursor = |(next, _): &(u64, StepRecord)| Cursor::Step(*next);
    let page = ListPage::new(rest, limit, cursor, |(_, step)| step);
    respond_with(room, (StatusCode::OK, HeaderMap::new()), page).await
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
pub(super) async fn found<T>(api: &Api, tenant: &TenantId, run_id: RunId, value: Option<T>) -> Result<T, Problem> {
    match value {
        Some(value) => Ok(value),
        None => Err(api.service.runs.reader.absent_run(tenant, run_id).await.into()),
    }
}
