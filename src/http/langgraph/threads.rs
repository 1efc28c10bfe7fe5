//! Threads.

use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::body::LangGraphObject;
use super::thread_changes::{create, merge_metadata, new_name};
use super::thread_path::{known_thread, missing};
use super::thread_view::ThreadView;
use crate::http::auth::Call;
use crate::http::chat_thread::ChatThread;
use crate::http::checks::check_metadata;
use crate::http::codes::ProblemCode;
use crate::http::in_flight::respond_with;
use crate::http::json_body::JsonBody;
use crate::http::parameters::PathParameters;
use crate::http::problem::Problem;
use crate::run::refusal::Refusal;
use agent::record::{ParseThreadNameError, ThreadRecord};
use store::keys::Scope;
use store::threads::{ThreadDelete, ThreadFilter, ThreadPage};
use values::json::Object;

/// The most threads that a search reads.
const MAX_READ: u32 = 1_000;
/// The most threads of an answer.
const MAX_LISTED: usize = 100;

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct CreateBody {
    thread_id: Option<String>,
    metadata: Option<Object>,
    if_exists: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct PatchBody {
    metadata: Option<Object>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct SearchBody {
    metadata: Option<Object>,
    ids: Option<Vec<String>>,
    status: Option<String>,
    sort_by: Option<String>,
    sort_order: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

/// Creates a thread.
#[utoipa::path(post, path = "/v1/langgraph/threads", tag = "langgraph",
    request_body(content = LangGraphObject, description = "`thread_id`, `metadata` and `if_exists`"), responses(
    (status = 200, description = "The thread", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadExists, ProblemCode::SessionNotFound]))))]
pub(in crate::http) async fn create_langgraph_thread(
    call: Call,
    JsonBody(body): JsonBody<CreateBody>,
) -> Result<Response, Problem> {
    let metadata = body.metadata.unwrap_or_default();
    check_metadata(&metadata, "/metadata")?;
    let name = match body.thread_id {
        Some(id) => id.parse().map_err(|error: ParseThreadNameError| {
            Problem::invalid_field("/thread_id", format!("it is the name of the thread, and {error}"))
        })?,
        None => new_name(&call)?,
    };
    let record = match create(&call, name.clone(), metadata).await {
        Err(Refusal::ThreadExists { .. }) if body.if_exists.as_deref() == Some("do_nothing") => {
            call.api.runs.store.thread_lookup(&call.tenant, &name).await?
        }
        created => Some(created?),
    };
    respond(&ChatThread::new(&call, name), record).await
}

/// Returns a thread.
#[utoipa::path(get, path = "/v1/langgraph/threads/{thread_id}", tag = "langgraph",
    params(("thread_id" = String, Path)), responses(
    (status = 200, description = "The thread", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn get_langgraph_thread(call: Call, path: PathParameters) -> Result<Response, Problem> {
    let (thread, record) = known_thread(&call, &path).await?;
    respond(&thread, record).await
}

/// Merges metadata into a thread.
#[utoipa::path(patch, path = "/v1/langgraph/threads/{thread_id}", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body(content = LangGraphObject, description = "`metadata`"), responses(
    (status = 200, description = "The thread", body = LangGraphObject),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn patch_langgraph_thread(
    call: Call,
    path: PathParameters,
    JsonBody(body): JsonBody<PatchBody>,
) -> Result<Response, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    let record = merge_metadata(&call, &thread.name, body.metadata.unwrap_or_default()).await?;
    respond(&thread, Some(record)).await
}

/// Takes a thread away. Its sessions stay.
#[utoipa::path(delete, path = "/v1/langgraph/threads/{thread_id}", tag = "langgraph",
    params(("thread_id" = String, Path)), responses(
    (status = 204, description = "Done"),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::ThreadBusy]))))]
pub(in crate::http) async fn delete_langgraph_thread(call: Call, path: PathParameters) -> Result<StatusCode, Problem> {
    let (thread, _) = known_thread(&call, &path).await?;
    let name = thread.name;
    match call.api.runs.store.thread_delete(&call.tenant, &name).await? {
        ThreadDelete::Deleted => {
            call.api.runs.publish_thread_removed(&call.tenant, &name);
            Ok(StatusCode::NO_CONTENT)
        }
        ThreadDelete::Absent => Err(missing(name.as_str())),
        ThreadDelete::Busy(run_id) => Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
}

/// Lists threads, those that have changed last first. The values of each one have a preview alone.
#[utoipa::path(post, path = "/v1/langgraph/threads/search", tag = "langgraph",
    request_body(content = LangGraphObject, description = "`metadata`, `ids`, `status`, `limit`, `offset`, `sort_by` and `sort_order`"), responses(
    (status = 200, description = "The threads", body = Vec<LangGraphObject>),
))]
pub(in crate::http) async fn list_langgraph_threads(
    call: Call,
    JsonBody(body): JsonBody<SearchBody>,
) -> Result<Json<Vec<ThreadView>>, Problem> {
    let filter = ThreadFilter {
        metadata: body.metadata.unwrap_or_default(),
        ..ThreadFilter::default()
    };
    let page = ThreadPage {
        after: None,
        limit: MAX_READ,
    };
    let mut records = call.api.runs.store.thread_list(&call.tenant, &filter, &page).await?;
    if let Some(ids) = &body.ids {
        records.retain(|record| ids.iter().any(|id| id == record.name.as_str()));
    }
    let by_creation = body.sort_by.as_deref() == Some("created_at");
    records.sort_by_key(|record| {
        if by_creation {
            record.created_at
        } else {
            record.updated_at
        }
    });
    if body.sort_order.as_deref() != Some("asc") {
        records.reverse();
    }
    let limit = body.limit.unwrap_or(10).min(MAX_LISTED);
    let mut views = Vec::new();
    let mut skipped = body.offset.unwrap_or_default();
    for record in records {
        if views.len() == limit {
            break;
        }
        let thread = ChatThread::new(&call, record.name.clone());
        if skipped > 0 && body.status.is_none() {
            skipped -= 1;
            continue;
        }
        let view = Box::pin(ThreadView::listed(&thread, record)).await?;
        if body.status.as_deref().is_some_and(|status| status != view.status) {
            continue;
        }
        if skipped > 0 {
            skipped -= 1;
            continue;
        }
        views.push(view);
    }
    Ok(Json(views))
}

/// Responds with a thread and its values, which only some callers may read.
async fn respond(thread: &ChatThread<'_>, record: Option<ThreadRecord>) -> Result<Response, Problem> {
    thread.call.check_scope(Scope::SessionsRead)?;
    let (share, view) = Box::pin(ThreadView::read(thread, record)).await?;
    respond_with(share, view).await
}
